"""A PostgreSQL server of our own, where this machine has its programs; or one that the environment names."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

GIVEN_SERVER = os.environ.get("STAGEHOLD_TEST_POSTGRES_URL")
INITDB = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)
BACK_ENDS = ["sqlite", "postgresql"] if GIVEN_SERVER or INITDB else ["sqlite"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    if GIVEN_SERVER:
        yield GIVEN_SERVER
    else:
        yield from _started_server()


@contextmanager
def own_schema(server: str) -> Iterator[str]:
    name = f"stagehold_{uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
        yield (
            make_url(server)
            .update_query_dict({"options": f"-csearch_path={name}"})
            .render_as_string(hide_password=False)
        )
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


def _started_server() -> Iterator[str]:
    """A server of our own on a Unix socket, so that no port is taken; PostgreSQL refuses to run as root."""
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="stagehold-postgres-"))
    if user:
        shutil.chown(folder, user)
    binaries = INITDB.parent
    initdb = [
        INITDB,
        "--no-sync",
        "--auth=trust",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C",
        f"--pgdata={folder}/data",
    ]
    subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=folder)
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
    with Path(folder / "log").open("w") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", f"{folder}/data", *options], stderr=log, user=user, cwd=folder
        )
    try:
        url = f"postgresql+psycopg2://postgres@/postgres?host={folder}"
        _wait_for(url)
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # ends what is connected too; SIGTERM would wait for it
        server.wait(30)
        shutil.rmtree(folder)


def _wait_for(url: str) -> None:
    engine = create_engine(url)
    deadline = time.monotonic() + 20
    while True:
        try:
            with closing(engine.raw_connection()):
                break
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    engine.dispose()
