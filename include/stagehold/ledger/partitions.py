"""Partitions: the records of every attempt about every partition of every stage, and into how many an interval cuts a
stage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, case, func, insert, select

from stagehold.ledger.database.column_types import bytes_of, storable
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of, records, row_of
from stagehold.ledger.database.schema import partition_counts, partitions
from stagehold.ledger.leases import check_epoch
from stagehold.model.records import Cell, Lease, PartitionCount, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.waves.sizing import WaveCost


@dataclass(frozen=True)
class StateFigures:
    """Partitions of one stage, by its id, and interval that one run left in their present state; ``recorded_at`` is the
    newest. A gate has ``judged`` so many; ``refused`` ones do not meet all critical expectations.
    """

    interval: str
    stage: str
    state: PartitionState
    run_id: str
    partitions: int
    rows: int
    bytes: int
    seconds: float
    recorded_at: datetime
    judged: int
    refused: int


class Partitions:
    """The `partitions` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, records: Sequence[PartitionRecord], lease: Lease) -> None:
        """Append all records or none; Fenced if ``lease`` was taken over, even if it has ended without being taken."""
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            if records:
                stored = [self._as_stored(record) for record in records]
                connection.execute(insert(partitions), [row_of(record) for record in stored])
                self._database.tell(*stored)

    def _as_stored(self, record: PartitionRecord) -> PartitionRecord:
        reason = record.reason and self._database.redact(record.reason)
        return replace(record, reason=reason, refused=tuple(map(storable, record.refused)))

    def newest(self, cell: Cell) -> tuple[PartitionRecord, ...]:
        """The newest record of each partition, by partition, whatever its state."""
        columns = partitions.c
        return self._newest(
            columns.pipeline == cell.pipeline, columns.interval == cell.interval, columns.stage == cell.stage
        )

    def newest_of(self, pipeline: str, interval: str) -> Mapping[str, tuple[PartitionRecord, ...]]:
        """`newest` of every stage that has records, by stage id, all as of the same moment."""
        found = self._newest(partitions.c.pipeline == pipeline, partitions.c.interval == interval)
        return {stage: tuple(records) for stage, records in groupby(found, key=lambda record: record.cell.stage)}

    def newest_of_each(
        self, pipeline: str, intervals: Collection[str]
    ) -> Mapping[str, Mapping[str, tuple[PartitionRecord, ...]]]:
        """`newest_of` of each interval that has records, all as of the same moment."""
        found = self._newest(partitions.c.pipeline == pipeline, partitions.c.interval.in_(intervals))
        return {
            interval: {stage: tuple(made) for stage, made in groupby(records, key=lambda record: record.cell.stage)}
            for interval, records in groupby(found, key=lambda record: record.cell.interval)
        }

    def width(self, cell: Cell) -> int:
        """One more than the highest number of a partition that has a record; 0 without any."""
        columns = partitions.c
        wanted = (columns.pipeline == cell.pipeline, columns.interval == cell.interval, columns.stage == cell.stage)
        with self._database.reading() as connection:
            highest = connection.scalar(select(func.max(columns.partition)).where(*wanted))
        return 0 if highest is None else int(highest) + 1

    def are_known(self, pipeline: str, interval: str) -> bool:
        """Whether anything is on record of the interval."""
        columns = partitions.c
        query = select(columns.id).where(columns.pipeline == pipeline, columns.interval == interval).limit(1)
        with self._database.reading() as connection:
            return connection.scalar(query) is not None

    def counts(self, pipeline: str, interval: str) -> Mapping[str, Mapping[PartitionState, int]]:
        """How many partitions of each stage are in each state now, by stage id. Faster than reading the records."""
        columns = partitions.c
        cell = (columns.pipeline == pipeline, columns.interval == interval)
        newest = select(func.max(columns.id)).where(*cell).group_by(columns.stage, columns.partition)
        query = select(columns.stage, columns.state, func.count()).where(columns.id.in_(newest))
        counts: dict[str, dict[PartitionState, int]] = {}
        with self._database.reading() as connection:
            for stage, state, count in connection.execute(query.group_by(columns.stage, columns.state)):
                counts.setdefault(stage, {})[state] = count
        return counts

    def figures(self, pipeline: str, intervals: Collection[str]) -> tuple[StateFigures, ...]:
        """Sums over the newest records of these intervals, by one query that returns one row for each state and run."""
        columns = partitions.c
        wanted = (columns.pipeline == pipeline, columns.interval.in_(intervals))
        newest = select(func.max(columns.id)).where(*wanted)
        newest = newest.group_by(columns.interval, columns.stage, columns.partition)
        group = (columns.interval, columns.stage, columns.state, columns.run_id)
        query = select(*group, *_SUMS).where(columns.id.in_(newest)).group_by(*group)
        with self._database.reading() as connection:
            return tuple(_figures(row) for row in connection.execute(query))

    def highest_id(self) -> int:
        """An id such that every row up to it is there now: none can appear below it later.

        PostgreSQL gives out ids before the transactions that use them are committed, so this waits for all of them; in
        SQLite there is one writer.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"LOCK TABLE {partitions.name} IN SHARE MODE")
            return connection.scalar(select(func.max(partitions.c.id))) or 0

    def newest_id(self, pipeline: str, interval: str) -> int:
        """The highest id among the rows of an interval; 0 if it has none."""
        of_interval = (partitions.c.pipeline == pipeline, partitions.c.interval == interval)
        with self._database.reading() as connection:
            return connection.scalar(select(func.max(partitions.c.id)).where(*of_interval)) or 0

    def between(self, pipeline: str, interval: str, after: int, upto: int) -> Mapping[str, tuple[PartitionRecord, ...]]:
        """The newest row of each partition, by stage id, among those with ids above ``after`` and up to ``upto``.

        Its time depends on the number of these rows, not on the number of records of the interval.
        """
        columns = partitions.c
        cell = [columns.pipeline == pipeline, columns.interval == interval]
        if after:
            # Without an index on what is no column, SQLite goes by the ids and not through all rows of the interval.
            cell = [columns.pipeline.concat("") == pipeline, columns.interval.concat("") == interval]
        found = self._newest(*cell, columns.id > after, columns.id <= upto)
        return {stage: tuple(records) for stage, records in groupby(found, key=lambda record: record.cell.stage)}

    def newest_everywhere(self, pipeline: str, stage: str) -> tuple[PartitionRecord, ...]:
        """The newest record of each partition of a stage in every interval."""
        return self._newest(partitions.c.pipeline == pipeline, partitions.c.stage == stage)

    def intervals(self, pipeline: str, limit: int | None = None) -> tuple[str, ...]:
        """The intervals of a pipeline that have records, the last worked on first."""
        columns = partitions.c
        query = select(columns.interval).where(columns.pipeline == pipeline).group_by(columns.interval)
        with self._database.reading() as connection:
            return tuple(connection.scalars(query.order_by(func.max(columns.id).desc()).limit(limit)))

    def knows(self, pipeline: str, interval: str) -> bool:
        """Whether anything of the interval is on record."""
        columns = partitions.c
        query = select(columns.id).where(columns.pipeline == pipeline, columns.interval == interval)
        with self._database.reading() as connection:
            return connection.scalar(query.limit(1)) is not None

    def intervals_of(self, pipeline: str, stage: str) -> tuple[str, ...]:
        """The intervals in which a stage has records, in no order."""
        columns = partitions.c
        query = select(columns.interval).where(columns.pipeline == pipeline, columns.stage == stage).distinct()
        with self._database.reading() as connection:
            return tuple(connection.scalars(query))

    def history(self, cell: Cell) -> tuple[PartitionRecord, ...]:
        """Every record of the cell, oldest first."""
        columns = partitions.c
        wanted = (columns.pipeline == cell.pipeline, columns.interval == cell.interval, columns.stage == cell.stage)
        return read_all(self._database, PartitionRecord, select(partitions).where(*wanted).order_by(columns.id))

    def of_interval(self, pipeline: str, interval: str) -> tuple[PartitionRecord, ...]:
        """Every record of the interval, oldest first."""
        wanted = (partitions.c.pipeline == pipeline, partitions.c.interval == interval)
        return read_all(self._database, PartitionRecord, select(partitions).where(*wanted).order_by(partitions.c.id))

    def of_run(self, run_id: str) -> tuple[PartitionRecord, ...]:
        """Every record of the run, oldest first."""
        query = select(partitions).where(partitions.c.run_id == run_id).order_by(partitions.c.id)
        return read_all(self._database, PartitionRecord, query)

    def seconds_of(self, run_ids: Collection[str]) -> Mapping[str, Mapping[int, float]]:
        """How long each partition took when one of these runs last timed it, by stage id and partition. Faster than
        reading the records.
        """
        columns = partitions.c
        query = select(columns.stage, columns.partition, columns.seconds)
        query = query.where(columns.run_id.in_(run_ids), columns.seconds.is_not(None)).order_by(columns.id)
        seconds: dict[str, dict[int, float]] = {}
        with self._database.reading() as connection:
            for stage, partition, took in connection.execute(query):
                seconds.setdefault(stage, {})[partition] = took
        return seconds

    def usual_cost(self, stage: str, run_ids: Sequence[str]) -> WaveCost | None:
        """What waves of a stage, by its id, took in the first of these runs that timed some; None without any."""
        columns = partitions.c
        timed = (
            select(func.count(), func.sum(columns.seconds), func.sum(bytes_of(columns.files)))
            .where(columns.stage == stage, columns.seconds.is_not(None))
            .group_by(columns.attempt_id, columns.wave)
            .order_by(func.min(columns.id))
        )
        with self._database.reading() as connection:
            for run_id in run_ids:
                waves = connection.execute(timed.where(columns.run_id == run_id)).all()
                if waves:
                    return WaveCost.of([(count, float(seconds), float(size)) for count, seconds, size in waves])
        return None

    def costs(self, run_ids: Sequence[str], before: datetime) -> Mapping[str, Mapping[str, tuple[int, float, float]]]:
        """By run and by id of a stage: how many partitions were timed before a moment, what they took, and what of that
        it took to store them. Of one that was computed twice the last time counts.
        """
        columns = partitions.c
        timed = (columns.run_id.in_(run_ids), columns.storing.is_not(None), columns.recorded_at < before)
        last = select(func.max(columns.id)).where(*timed).group_by(columns.run_id, columns.stage, columns.partition)
        sums = (func.count(), func.sum(columns.seconds), func.sum(columns.storing))
        query = select(columns.run_id, columns.stage, *sums).where(columns.id.in_(last))
        found: dict[str, dict[str, tuple[int, float, float]]] = {}
        with self._database.reading() as connection:
            for run_id, stage, count, seconds, storing in connection.execute(
                query.group_by(columns.run_id, columns.stage)
            ):
                found.setdefault(run_id, {})[stage] = (count, float(seconds), float(storing))
        return found

    def _newest(self, *cells: ColumnElement[bool]) -> tuple[PartitionRecord, ...]:
        # The inner query is answered by the index alone, so that what older attempts left (files, reasons) is never
        # read.
        columns = partitions.c
        newest = select(func.max(columns.id)).where(*cells).group_by(columns.interval, columns.stage, columns.partition)
        query = (
            select(partitions)
            .where(columns.id.in_(newest))
            .order_by(columns.interval, columns.stage, columns.partition)
        )
        return read_all(self._database, PartitionRecord, query)


_SUMS = (
    func.count(),
    func.sum(partitions.c.rows),
    func.sum(bytes_of(partitions.c.files)),
    func.coalesce(func.sum(partitions.c.seconds), 0.0),
    func.max(partitions.c.recorded_at),
    func.sum(case((partitions.c.judged != "", 1), else_=0)),
    func.sum(case((partitions.c.refused.is_not(None), 1), else_=0)),
)


def _figures(row: Sequence[Any]) -> StateFigures:
    interval, stage, state, run_id, count, rows, size, seconds, at, judged, refused = row
    return StateFigures(
        interval, stage, state, run_id, count, int(rows), int(size), float(seconds), at, int(judged), int(refused)
    )


class PartitionCounts:
    """The `partition_counts` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decided(self, pipeline: str, interval: str) -> Mapping[str, PartitionCount]:
        """The numbers of partitions that were decided for the interval, by stage id."""
        columns = partition_counts.c
        query = select(partition_counts).where(columns.pipeline == pipeline, columns.interval == interval)
        with self._database.reading() as connection:
            found = records(connection, PartitionCount, query)
            return {count.cell.stage: count for count in found}

    def decide(self, count: PartitionCount) -> PartitionCount:
        """Record ``count`` unless a count is there; returns the count that is valid, which is the first one for
        ever.
        """
        row = row_of(count)
        columns = partition_counts.c
        standing = select(partition_counts).where(
            *(columns[name] == row[name] for name in ("pipeline", "interval", "stage"))
        )
        with self._database.writing() as connection:
            new = self._database.insert(partition_counts).values(row).on_conflict_do_nothing()
            if connection.execute(new).rowcount:
                self._database.tell(count)
            return record_of(PartitionCount, connection.execute(standing).mappings().one())
