"""Facts: everything that the ledger decides by, read as a whole and written back, for who rebuilds a ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, insert, select

from stagehold.ledger.database.columns import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import (
    acceptance_from,
    acceptance_row,
    attempt_from,
    attempt_row,
    backfill_from,
    backfill_row,
    checkpoint_from,
    checkpoint_row,
    gate_result_from,
    gate_result_row,
    partition_count_from,
    partition_count_row,
    partition_from,
    partition_row,
    position_from,
    position_row,
    restore_from,
    restore_row,
    run_from,
    run_row,
    stage_verdict_from,
    stage_verdict_row,
    waiver_from,
    waiver_row,
)
from stagehold.ledger.database.schema import (
    acceptances,
    attempts,
    backfills,
    checkpoints,
    gate_results,
    leases,
    partition_counts,
    partitions,
    positions,
    restores,
    runs,
    stage_verdicts,
    waivers,
)
from stagehold.model.backfill import Backfill
from stagehold.model.checkpoint_records import CheckpointRecord
from stagehold.model.records import (
    Acceptance,
    Attempt,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    StageVerdict,
    TakenPosition,
    Waiver,
)


@dataclass(frozen=True)
class _Kept:
    """Where facts of a kind are kept, and how they become rows and facts again."""

    table: Table
    read: Callable[[RowMapping], Any]
    write: Callable[[Any], dict[str, Any]]


KEPT: Mapping[type[Fact], _Kept] = {
    Run: _Kept(runs, run_from, run_row),
    Attempt: _Kept(attempts, attempt_from, attempt_row),
    PartitionCount: _Kept(partition_counts, partition_count_from, partition_count_row),
    Restore: _Kept(restores, restore_from, restore_row),
    Backfill: _Kept(backfills, backfill_from, backfill_row),
    CheckpointRecord: _Kept(checkpoints, checkpoint_from, checkpoint_row),
    Acceptance: _Kept(acceptances, acceptance_from, acceptance_row),
    Waiver: _Kept(waivers, waiver_from, waiver_row),
    TakenPosition: _Kept(positions, position_from, position_row),
    PartitionRecord: _Kept(partitions, partition_from, partition_row),
    GateResult: _Kept(gate_results, gate_result_from, gate_result_row),
    StageVerdict: _Kept(stage_verdicts, stage_verdict_from, stage_verdict_row),
}
Choose = Callable[[Sequence[Fact]], Sequence[Fact]]  # given all facts
REBUILDER = "reconcile"  # holds a lease whose holder nobody knows any more


class Facts:
    """All tables but those of events and transitions, which are for people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[Fact, ...]:
        """Every fact, each table in the order in which it was written."""
        with self._database.reading() as connection:
            return tuple(fact for kept in KEPT.values() for fact in _read(connection, kept))

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
            chosen = tuple(choose(tuple(fact for kept in KEPT.values() for fact in _read(connection, kept))))
            for kind, kept in KEPT.items():
                rows = [kept.write(fact) for fact in chosen if type(fact) is kind]
                if "id" in kept.table.c:
                    _append(connection, kept.table, rows)
                else:
                    self._replace(connection, kept.table, rows)
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
        names = ", ".join(kept.table.name for kept in KEPT.values())
        connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def _append(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _read(connection: Connection, kept: _Kept) -> tuple[Fact, ...]:
    order = [kept.table.c.id] if "id" in kept.table.c else list(kept.table.primary_key)
    return tuple(kept.read(row) for row in connection.execute(select(kept.table).order_by(*order)).mappings())
