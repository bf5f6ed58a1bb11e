"""The real ledger on an SQLite database in memory: the product's schema and statements, whose transactions are steps.

All worlds of a process use one connection, one after the other, so that every statement is compiled once. A new world
finds it empty.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.simulator.effects import Effects, Fault, stepping
from sqlalchemy import Connection, Engine, StaticPool, create_engine
from tests.ledger.blank import lay_blank_ledger

from stagehold.chronicle.chronicle import LakeChronicle
from stagehold.errors import LedgerUnavailable
from stagehold.ledger.database.engine import Database
from stagehold.model.records import Fact

BEGINNING = datetime(2026, 11, 20, tzinfo=UTC)
ADDRESS = "sqlite:////dev/null/ledger.db"  # of no file: the connection is handed in


class SimulatedDatabase(Database):
    """Every transaction that writes is one step. ``clock`` is what leases go by, and jumps as a world wants."""

    def __init__(self, effects: Effects, lake_uri: str) -> None:
        super().__init__(ADDRESS, chronicle=self._tell_lake)
        self.effects, self.clock = effects, BEGINNING
        self._lake, self._fault = LakeChronicle(lake_uri), None
        _connection().create_function("strftime", 3, self._time)
        self.forget()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if stepping() is None or self._joining():
            with super().writing() as connection:
                yield connection
            return
        with self.effects.one_step(f"ledger: {_caller()}") as self._fault:
            if self._fault is Fault.LOST_REQUEST:
                raise LedgerUnavailable(self.name, self._fault)
            with super().writing() as connection:
                yield connection
            if self._fault is not None:
                raise LedgerUnavailable(self.name, self._fault)

    def rows(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """For who looks on; it is no step."""
        return _connection().execute(question, values).fetchall()

    def copied(self) -> sqlite3.Connection:
        copy = sqlite3.connect(":memory:")
        _connection().backup(copy)
        return copy

    def forget(self, copy: sqlite3.Connection | None = None) -> None:
        """Lose everything, or all that came after the copy.

        A copy is put back page by page. `deserialize` would change the schema under SQLite's feet: the next statement
        with a `json_each` looks for the one before, reads what is not its own, and kills the process.
        """
        if copy is not None:
            copy.backup(_connection())
            return
        _connection().executescript(_emptying())

    def close(self) -> None:
        """The next world goes on with the connection."""

    def _engine(self) -> Engine:
        return _engine()

    @contextmanager
    def _begun(self, *, writes: bool) -> Iterator[Connection]:
        """One connection, on which nobody else is: no transaction is needed to read."""
        connection = _open()
        if not writes:
            yield connection
            return
        _connection().execute("BEGIN")
        try:
            yield connection
        except BaseException:
            _connection().execute("ROLLBACK")
            raise
        _connection().execute("COMMIT")

    def _tell_lake(self, facts: Sequence[Fact]) -> None:
        self._lake(facts)
        if self._fault is Fault.HALF:
            raise LedgerUnavailable(self.name, self._fault)

    def _time(self, _form: str, _now: str, seconds: str) -> str:
        moment = self.clock + timedelta(seconds=float(seconds.removesuffix(" seconds")))
        return f"{moment:%Y-%m-%d %H:%M:%S.%f}"


@cache
def _connection() -> sqlite3.Connection:
    with tempfile.TemporaryDirectory() as folder:
        blank = lay_blank_ledger(Path(folder, "ledger.db")).read_bytes()
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None, cached_statements=1000)
    connection.deserialize(blank.replace(b"\x02\x02", b"\x01\x01", 1) if blank[18:20] == b"\x02\x02" else blank)
    return connection


@cache
def _engine() -> Engine:
    return create_engine("sqlite://", creator=_connection, poolclass=StaticPool, isolation_level="AUTOCOMMIT")


@cache
def _open() -> Connection:
    """Statements of SQLAlchemy's, one by one: whoever asks for a transaction begins and ends it."""
    return _engine().connect()


@cache
def _emptying() -> str:
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('sqlite_sequence', 'ledger_version')"
    tables = [name for (name,) in _connection().execute(named)]
    deletions = [f"DELETE FROM {name};" for name in tables]
    return " ".join(("BEGIN;", *deletions, "COMMIT;"))


def _caller() -> str:
    """Who begins a transaction, for people: the first function that is neither here nor in the ledger's engine."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name in _ENGINE:
        frame = frame.f_back
    return str(frame.f_code.co_qualname)


_ENGINE = {"writing", "__enter__", "together", "_caller"}
