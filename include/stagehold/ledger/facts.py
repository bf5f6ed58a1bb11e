"""Facts: everything that the ledger decides by, read as a whole and written back, for who rebuilds a ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import records, row_of
from stagehold.ledger.database.schema import leases
from stagehold.ledger.kinds import KINDS, FactKind
from stagehold.model.records import Fact

Choose = Callable[[Sequence[Fact]], Sequence[Fact]]  # given all facts
REBUILDER = "reconcile"  # holds a lease whose holder nobody knows any more


class Facts:
    """All tables but those of events and transitions, which are for people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[Fact, ...]:
        """Every fact, each table in the order in which it was written."""
        with self._database.reading() as connection:
            return tuple(fact for kind in KINDS for fact in _read(connection, kind))

    def epochs(self) -> Mapping[str, int]:
        """The newest epoch of every lease, by its name."""
        with self._database.reading() as connection:
            return {row.name: row.epoch for row in connection.execute(select(leases.c.name, leases.c.epoch))}

    def mend(self, choose: Choose) -> tuple[Fact, ...]:
        """Write the facts that ``choose`` picks, knowing all that are here, and give them. They go past the machines of
        states: in place of the row with their key, or behind all others where rows are numbered.

        Nobody writes between that knowledge and the rows, so none becomes newer than what it did not know of. They are
        not told to the chronicle, where they come from.
        """
        with self._database.writing() as connection:
            _lock(connection)
            chosen = tuple(choose(tuple(fact for kind in KINDS for fact in _read(connection, kind))))
            for kind in KINDS:
                rows = [row_of(fact) for fact in chosen if type(fact) is kind.type]
                if not kind.appended:
                    self._replace(connection, kind.table, rows)
                elif rows:
                    connection.execute(insert(kind.table), rows)
        return chosen

    def raise_epochs(self, epochs: Mapping[str, int]) -> None:
        """Have the next holder of each lease get a higher epoch; whoever has a lower one now is fenced."""
        with self._database.writing() as connection:
            for name, epoch in epochs.items():
                row = {"name": name, "holder": REBUILDER, "epoch": epoch, "expires_at": DatabaseTime()}
                new = self._database.insert(leases).values(row)
                higher = {"holder": REBUILDER, "epoch": epoch, "expires_at": DatabaseTime()}
                connection.execute(
                    new.on_conflict_do_update(index_elements=["name"], set_=higher, where=leases.c.epoch < epoch)
                )

    def _replace(self, connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        keys = [column.name for column in table.primary_key]
        for row in rows:
            new = self._database.insert(table).values(row)
            changed = {name: value for name, value in row.items() if name not in keys}
            connection.execute(new.on_conflict_do_update(index_elements=keys, set_=changed))


def _lock(connection: Connection) -> None:
    """SQLite's write lock is the same for the whole file."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(kind.table.name for kind in KINDS)
        connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def _read(connection: Connection, kind: FactKind[Any]) -> tuple[Fact, ...]:
    order = [kind.table.c.id] if kind.appended else list(kind.table.primary_key)
    return records(connection, kind.type, select(kind.table).order_by(*order))
