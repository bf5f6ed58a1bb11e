"""A pgbouncer of our own, where this machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
CONFIGURATION = """\
[databases]
* = host={host} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
max_client_conn = 1000
default_pool_size = {connections}
"""


@contextmanager
def own_pooler(server: str, connections: int = 2) -> Iterator[str]:
    """The databases of a server of our own by a pooler with so many connections to each, which it lends for a
    transaction at a time.
    """
    assert PROGRAM is not None, "this machine has no pgbouncer"
    behind = make_url(server)
    folder = Path(tempfile.mkdtemp(prefix="stagehold-pgbouncer-"))
    user = "postgres" if os.geteuid() == 0 else None
    (folder / "users").write_text('"postgres" ""\n')
    said = CONFIGURATION.format(host=behind.query["host"], folder=folder, connections=connections)
    (folder / "pgbouncer.ini").write_text(said)
    if user:
        shutil.chown(folder, user)
    with (folder / "log").open("w") as log:
        pooler = subprocess.Popen(
            [PROGRAM, folder / "pgbouncer.ini"], stderr=log, user=user, cwd=folder, start_new_session=True
        )
    deadline = time.monotonic() + 30
    while not any(folder.glob(".s.PGSQL.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        yield f"postgresql+psycopg2://postgres@/{behind.database}?host={folder}&port=6432"
    finally:
        pooler.terminate()
        pooler.wait(30)
        shutil.rmtree(folder)
