"""A PostgreSQL server of our own, where this machine has its programs; or one that the environment names."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

GIVEN_SERVER = os.environ.get("STAGEHOLD_TEST_POSTGRES_URL")
PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
BACK_ENDS = ["sqlite", "postgresql"] if GIVEN_SERVER or PROGRAMS else ["sqlite"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    if GIVEN_SERVER:
        yield GIVEN_SERVER
    else:
        with own_server() as server:
            yield server.url


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


def copy_ledger(url: str, file: Path) -> None:
    """All that is in the database of a server of our own, which a file in a folder can be put back from."""
    _program("pg_dump", url, "--schema=public", "--clean", "--if-exists", f"--file={file}")


def put_back(url: str, file: Path) -> None:
    _program("psql", url, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={file}")


def lose_ledger(url: str) -> None:
    """Whoever is connected loses that, as when the database is made anew."""
    with _administered(url) as connection:
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"))
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))


def in_transaction(url: str) -> bool:
    """Whether anybody is in the middle of one."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    with _administered(url) as connection:
        return bool(connection.execute(text(f"{asked} AND backend_type = 'client backend'")).scalar())


@contextmanager
def _administered(url: str) -> Iterator[Connection]:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _program(name: str, url: str, *words: str) -> None:
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    subprocess.run([PROGRAMS / name, f"--dbname={address}", *words], check=True, capture_output=True)


@contextmanager
def own_server(connections: int = 100) -> Iterator[PostgresServer]:
    """A server of our own on a Unix socket, so that no port is taken; PostgreSQL refuses to run as root. It ends when
    it is told to, and not with a terminal's SIGINT, which those who are connected need a while for.
    """
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="stagehold-postgres-"))
    if user:
        shutil.chown(folder, user)
    initdb = [
        PROGRAMS / "initdb",
        "--no-sync",
        "--auth=trust",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C",
        f"--pgdata={folder}/data",
    ]
    subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=folder)
    server = PostgresServer(folder, user, connections)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@dataclass
class PostgresServer:
    """May be stopped and started again; what was committed is there then."""

    folder: Path
    user: str | None
    connections: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Asks for little memory, and for none in /dev/shm: Spark is beside it, and containers have 64 MB there."""
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": str(self.connections),
            "dynamic_shared_memory_type": "mmap",
        }
        command = [
            PROGRAMS / "postgres",
            "-D",
            f"{self.folder}/data",
            *(f"--{name}={value}" for name, value in given.items()),
        ]
        with Path(self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, stderr=log, user=self.user, cwd=self.folder, start_new_session=True
            )
        try:
            _wait_for(self.process, self.url)
        except OperationalError as error:
            self.process.kill()
            said = (self.folder / "log").read_text()
            pytest.fail(f"PostgreSQL does not answer: {error.orig}\n{said}", pytrace=False)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends what is connected too, SIGQUIT also what it is just doing; SIGTERM would wait for it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(30)
            self.process = None


def _wait_for(server: subprocess.Popen[bytes], url: str) -> None:
    engine = create_engine(url)
    deadline = time.monotonic() + 120  # other tests keep all processors busy
    while True:
        try:
            engine.connect().close()
            break
        except OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    engine.dispose()
