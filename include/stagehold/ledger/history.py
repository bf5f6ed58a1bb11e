"""History: old rows that no decision needs any more leave the ledger, so that it does not grow for ever."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, delete, false, func, not_, or_, select, tuple_, union

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import (
    acknowledgements,
    attempts,
    checkpoints,
    events,
    gate_results,
    partitions,
    runs,
    transitions,
)
from stagehold.model.checkpoint_records import CheckpointState
from stagehold.model.records import TRACE, RunState

AT_ONCE = 2_000  # rows in a transaction: SQLite's other writers wait for each


@dataclass(frozen=True)
class Forgotten:
    """How many rows of each kind left the ledger, or would leave it."""

    events: int
    traces: int
    transitions: int
    partitions: int
    gate_results: int
    checkpoints: int
    acknowledgements: int


@dataclass(frozen=True)
class WithoutOldFiles:
    """Pipelines and intervals without any file that only replaced records name.

    Their files were looked at after the record with the id ``upto`` had been made. Records that are replaced later may
    have files that are still there.
    """

    places: Collection[tuple[str, str]]
    upto: int


class History:
    """Old rows of all tables that grow with every run.

    Runs, attempts, leases, positions, counts, acceptances, pins and restores are few and decide, so they stay. Of the
    rest stays what somebody decides by:

    * The newest record of each partition, which is what plans, adoption and scrubs ask for, and the newest that was
      published: `retake` refuses while there is one, whatever the gate said of the partition later.
    * Records of attempts that worked for a restore: a partition counts as computed for it whatever replaced it later.
    * All that was said of a partition by the attempt that judged it last.
    * Checkpoints that can be restored or are under way, and the highest number of each run, as numbers never repeat.
    * Everything about a run that has not ended, and about the newest one of an interval unless it finished: somebody
      may resume it and wants to know why it failed. A run that is resumed later begins a new life, and what its
      strategy asks transitions for is that life alone.

    How long waves should be is guessed from the seconds of the records that are left; nothing else changes. Who follows
    the events of a run that ended that long ago, and is being resumed, may miss some. A manifest whose row went before
    it was deleted, because its deleter died, is not cleared away by the run's next checkpoint.
    """

    def __init__(self, database: Database, at_once: int = AT_ONCE) -> None:
        self._database, self._at_once = database, at_once

    def forget(self, older_than: datetime, cleared: WithoutOldFiles, *, dry_run: bool) -> Forgotten:
        """Delete old rows that decide nothing, some at a time; a process that dies half-way may begin anew.

        :param cleared: in all other places records of partitions stay: without them their files would not be found.

        The chronicle is not changed. Until it is compacted, a lost ledger comes back with what was forgotten, and
        decides as before.
        """
        work = self._count if dry_run else self._delete
        ended = _ended_runs(older_than)
        return Forgotten(
            events=work(events, events.c.run_id.in_(ended), events.c.kind != TRACE),
            traces=work(events, events.c.run_id.in_(ended), events.c.kind == TRACE),
            transitions=work(transitions, transitions.c.run_id.in_(ended)),
            partitions=work(partitions, *_replaced_partitions(older_than, cleared)),
            gate_results=work(gate_results, *_overruled_results(older_than)),
            checkpoints=work(checkpoints, *_gone_checkpoints(older_than)),
            acknowledgements=work(acknowledgements, *_of_gone_checkpoints(older_than)),
        )

    def runs_to_forget(self, older_than: datetime) -> tuple[str, ...]:
        """The runs that have events, traces or transitions which `forget` deletes."""
        ended = _ended_runs(older_than)
        known = union(*(select(table.c.run_id).where(table.c.run_id.in_(ended)) for table in (events, transitions)))
        with self._database.reading() as connection:
            return tuple(connection.scalars(known.order_by("run_id")))

    def _count(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        with self._database.reading() as connection:
            return connection.scalar(select(func.count()).select_from(table).where(*conditions)) or 0

    def _delete(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        """Delete rows. They are looked for without a lock, and each is checked once more when it goes: its run may have
        begun anew.
        """
        key = tuple_(*table.primary_key)
        with self._database.reading() as connection:
            found = [tuple(row) for row in connection.execute(select(*table.primary_key).where(*conditions))]
        return sum(
            self._delete_some(table, key.in_(found[start : start + self._at_once]), *conditions)
            for start in range(0, len(found), self._at_once)
        )

    def _delete_some(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        with self._database.writing() as connection:
            return connection.execute(delete(table).where(*conditions)).rowcount


def _ended_runs(older_than: datetime) -> Select[tuple[Any]]:
    newer = runs.alias()
    later = or_(
        newer.c.started_at > runs.c.started_at,
        and_(newer.c.started_at == runs.c.started_at, newer.c.run_id > runs.c.run_id),
    )
    replaced = select(newer.c.run_id).where(*_same(newer, runs, "pipeline", "interval"), later).exists()
    return select(runs.c.run_id).where(runs.c.ended_at < older_than, or_(runs.c.state == RunState.FINISHED, replaced))


def _replaced_partitions(older_than: datetime, cleared: WithoutOldFiles) -> Sequence[ColumnElement[bool]]:
    other, published = partitions.alias(), partitions.alias()
    newest = (
        select(func.max(other.c.id))
        .where(*_same(other, partitions, *_PLACE), other.c.id <= cleared.upto)
        .scalar_subquery()
    )
    newest_published = (
        select(func.max(published.c.id))
        .where(*_same(published, partitions, *_PLACE), published.c.version.is_not(None))
        .scalar_subquery()
    )
    restoring = select(attempts.c.attempt_id).where(attempts.c.restore.is_not(None))
    return (
        tuple_(partitions.c.pipeline, partitions.c.interval).in_(cleared.places),
        partitions.c.recorded_at < older_than,
        partitions.c.id < newest,
        or_(partitions.c.version.is_(None), partitions.c.id < newest_published),
        partitions.c.attempt_id.not_in(restoring),
    )


def _overruled_results(older_than: datetime) -> Sequence[ColumnElement[bool]]:
    other = gate_results.alias()
    last_judge = (
        select(other.c.attempt_id)
        .where(*_same(other, gate_results, *_PLACE))
        .order_by(other.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return gate_results.c.recorded_at < older_than, gate_results.c.attempt_id != last_judge


def _gone_checkpoints(older_than: datetime) -> Sequence[ColumnElement[bool]]:
    other, columns = checkpoints.alias(), checkpoints.c
    highest = select(func.max(other.c.number)).where(*_same(other, checkpoints, "run_id")).scalar_subquery()
    failed = and_(columns.state == CheckpointState.FAILED, columns.ended_at < older_than)
    return columns.number < highest, or_(columns.discarded_at < older_than, failed)


def _of_gone_checkpoints(older_than: datetime) -> Sequence[ColumnElement[bool]]:
    """Checkpoints that are gone and, for counting, those that are about to go."""
    stays = select(checkpoints.c.number).where(
        *_same(checkpoints, acknowledgements, "run_id", "number"),
        not_(func.coalesce(and_(*_gone_checkpoints(older_than)), false())),
    )
    return (acknowledgements.c.asked_at < older_than, not_(stays.exists()))


_PLACE = ("pipeline", "interval", "stage", "partition")


def _same(table: Any, others: Any, *names: str) -> Sequence[ColumnElement[bool]]:
    """Rows of two tables that agree in the columns with these names."""
    return tuple(table.c[name] == others.c[name] for name in names)
