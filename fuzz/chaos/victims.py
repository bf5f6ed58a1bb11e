"""Whom a fault hits: the processes that somebody started, and one that is to sleep without the ledger in its hands."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.run.zygote import Command

A_MOMENT = 0.02


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    try:
        own = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return [*own, *(grandchild for child in own for grandchild in children(child))]


def leave_the_ledger(frozen: Command, ledger: Path) -> None:
    """A thread of it may be in the middle of a transaction, and keeps SQLite's lock for as long as it sleeps."""
    while _is_locked(ledger):
        frozen.send_signal(signal.SIGCONT)
        time.sleep(A_MOMENT)
        frozen.send_signal(signal.SIGSTOP)


def _is_locked(ledger: Path) -> bool:
    with closing(sqlite3.connect(ledger, timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False
