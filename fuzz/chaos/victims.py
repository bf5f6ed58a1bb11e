"""Whom a fault hits: the processes that somebody started, and one that is to sleep without the ledger in its hands."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.postgres import in_transaction
from tests.run.zygote import Command

from stagehold.settings import Settings

A_MOMENT = 0.02


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    try:
        own = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return [*own, *(grandchild for child in own for grandchild in children(child))]


def leave_the_ledger(frozen: Command, settings: Settings) -> None:
    """A thread of it may be in the middle of a transaction, and keeps its locks for as long as it sleeps."""
    is_locked = in_transaction if settings.ledger_url.startswith("postgresql") else _is_locked
    while is_locked(settings.ledger_url):
        frozen.send_signal(signal.SIGCONT)
        time.sleep(A_MOMENT)
        frozen.send_signal(signal.SIGSTOP)


def _is_locked(url: str) -> bool:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False
