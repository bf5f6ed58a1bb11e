"""A ledger in which nothing has happened, made once for all tests of a process."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from stagehold.ledger import Ledger


def lay_blank_ledger(file: Path) -> Path:
    """Write one that is not there yet; takes a tenth of what making one does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_bytes(_blank())
    return file


@cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ledger.db")
        Ledger.open(f"sqlite:///{file}").close()
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return file.read_bytes()
