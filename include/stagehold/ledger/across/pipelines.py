"""Pipelines: many at once, with as many queries for a hundred as for one, and the checkpoints of all runs of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Select, case, func, select, tuple_

from stagehold.ledger.database.column_types import bytes_of
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, record_of
from stagehold.ledger.database.schema import (
    acknowledgements,
    checkpoints,
    partition_counts,
    partitions,
    restores,
    runs,
    transitions,
)
from stagehold.model.checkpoint_records import Answer, CheckpointRecord, CheckpointState
from stagehold.model.records import Restore, Run
from stagehold.model.standing import Amount, PartitionState, StateCounts

Place = tuple[str, str]  # pipeline and interval
StageCounts = Mapping[str, StateCounts]  # by stage id
Numbers = Mapping[str, int]  # of partitions, by stage id


class PipelinesAtOnce:
    """Runs and partitions of several pipelines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self) -> frozenset[str]:
        """Every pipeline that has a run."""
        with self._database.reading() as connection:
            return frozenset(connection.scalars(select(runs.c.pipeline).distinct()))

    def newest_runs(self, pipelines: Collection[str], each: int) -> Mapping[str, tuple[Run, ...]]:
        """The last runs of each pipeline, the newest first; nothing of a pipeline that never ran."""
        newest_first = (runs.c.started_at.desc(), runs.c.run_id.desc())
        place = func.row_number().over(partition_by=runs.c.pipeline, order_by=newest_first).label("place")
        ranked = select(runs.c.run_id, place).where(runs.c.pipeline.in_(pipelines)).subquery()
        query = select(runs).join(ranked, runs.c.run_id == ranked.c.run_id).where(ranked.c.place <= each)
        found: defaultdict[str, list[Run]] = defaultdict(list)
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(*newest_first)).mappings():
                found[row["pipeline"]].append(record_of(Run, row))
        return {pipeline: tuple(runs) for pipeline, runs in found.items()}

    def changed(self, partition: int, transition: int) -> tuple[frozenset[Place], int, int]:
        """Where anything was recorded, or a run or an attempt has moved, behind these row numbers; and the highest row
        numbers there are.
        """
        recorded = select(partitions.c.pipeline, partitions.c.interval).where(partitions.c.id > partition)
        moved = select(runs.c.pipeline, runs.c.interval).join(transitions, transitions.c.run_id == runs.c.run_id)
        last = (select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery() for table in (partitions, transitions))
        with self._database.reading() as connection:
            # Before the places, so that what is recorded meanwhile is told twice and not left out.
            last_partition, last_transition = connection.execute(select(*last)).one()
            rows = connection.execute(recorded.union(moved.where(transitions.c.id > transition)))
            return frozenset((pipeline, interval) for pipeline, interval in rows), last_partition, last_transition

    def decided(self, places: Collection[Place]) -> Mapping[Place, Numbers]:
        """The numbers of partitions that were decided for each interval; nothing of one without any."""
        columns = partition_counts.c
        place = tuple_(columns.pipeline, columns.interval)
        query = select(columns.pipeline, columns.interval, columns.stage, columns.partitions).where(place.in_(places))
        found: defaultdict[Place, dict[str, int]] = defaultdict(dict)
        with self._database.reading() as connection:
            for pipeline, interval, stage, partitions_of_it in connection.execute(query):
                found[pipeline, interval][stage] = partitions_of_it
        return dict(found)

    def counts(
        self, places: Collection[Place], below: Mapping[Place, Numbers] | None = None
    ) -> Mapping[Place, StageCounts]:
        """How many partitions of each stage, by its id, are in each state now; nothing of an interval without any.

        :param below: the numbers from which on partitions of a stage do not count: there were more of them once.
        """
        columns = partitions.c
        group = (columns.pipeline, columns.interval, columns.stage, columns.state)
        newest = select(func.max(columns.id)).where(tuple_(columns.pipeline, columns.interval).in_(places))
        newest = newest.group_by(columns.pipeline, columns.interval, columns.stage, columns.partition)
        query = select(*group, func.count(), func.max(columns.partition)).where(columns.id.in_(newest))
        found: dict[Place, dict[str, dict[PartitionState, int]]] = {}
        too_many: set[tuple[Place, str, int]] = set()
        with self._database.reading() as connection:
            for pipeline, interval, stage, state, count, last in connection.execute(query.group_by(*group)):
                place = (pipeline, interval)
                found.setdefault(place, {}).setdefault(stage, {})[state] = count
                end = (below or {}).get(place, {}).get(stage)
                if end is not None and last >= end:
                    too_many.add((place, stage, end))
            for place, stage, end in too_many:
                found[place][stage] = _counts_below(place, stage, end, connection)
        return found


def _counts_below(place: Place, stage: str, end: int, connection: Connection) -> dict[PartitionState, int]:
    """Partitions of one stage by state, without those from ``end`` on."""
    columns = partitions.c
    cell = (columns.pipeline == place[0], columns.interval == place[1], columns.stage == stage)
    newest = select(func.max(columns.id)).where(*cell, columns.partition < end).group_by(columns.partition)
    query = select(columns.state, func.count()).where(columns.id.in_(newest)).group_by(columns.state)
    return {state: count for state, count in connection.execute(query)}


CheckpointKey = tuple[str, int]  # run and number


@dataclass(frozen=True)
class AcknowledgedParts:
    """How many attempts were asked to do their part in a checkpoint, and how many did; from when the first of them was
    asked until the last one that did was behind its wave.
    """

    acknowledged: int
    asked: int
    asked_at: datetime | None = None
    aligned_at: datetime | None = None

    @property
    def alignment(self) -> float | None:
        """Seconds that the checkpoint waited for waves to end; None unless all did their part."""
        if self.asked_at is None or self.aligned_at is None or self.acknowledged < self.asked:
            return None
        return (self.aligned_at - self.asked_at).total_seconds()


class CheckpointHistory:
    """Reads `checkpoints`, `acknowledgements` and `restores` by pipeline."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self, pipeline: str) -> Mapping[CheckpointState, int]:
        """Checkpoints by state, as Flink counts them: one that was replaced was completed."""
        query = select(checkpoints.c.state, func.count()).where(checkpoints.c.pipeline == pipeline)
        with self._database.reading() as connection:
            return {state: count for state, count in connection.execute(query.group_by(checkpoints.c.state))}

    def page(self, pipeline: str, limit: int, offset: int) -> tuple[CheckpointRecord, ...]:
        """Checkpoints of all runs, the last triggered first."""
        return read_all(self._database, CheckpointRecord, _newest_first(pipeline).limit(limit).offset(offset))

    def latest(
        self, pipeline: str, state: CheckpointState, *, savepoint: bool | None = None
    ) -> CheckpointRecord | None:
        """The newest that came so far; with ``savepoint`` one of the user's, or one of ours."""
        query = _newest_first(pipeline).where(checkpoints.c.state == state)
        if savepoint is not None:
            query = query.where(_is_savepoint() if savepoint else ~_is_savepoint())
        return read_one(self._database, CheckpointRecord, query.limit(1))

    def restored(self, pipeline: str) -> tuple[int, Restore | None]:
        """How often a run of the pipeline began with a checkpoint or savepoint, and the newest of these."""
        known = (restores.c.snapshot.is_not(None), restores.c.snapshot != "", runs.c.pipeline == pipeline)
        joined = restores.join(runs, runs.c.run_id == restores.c.run_id)
        newest = select(restores).select_from(joined).where(*known).order_by(restores.c.requested_at.desc()).limit(1)
        with self._database.reading() as connection:
            count = connection.scalar(select(func.count()).select_from(joined).where(*known)) or 0
            row = connection.execute(newest).mappings().one_or_none()
        return count, record_of(Restore, row) if row else None

    def parts(self, of: Collection[CheckpointKey]) -> Mapping[CheckpointKey, AcknowledgedParts]:
        """How many attempts had a part in each checkpoint; nothing of a checkpoint in which nobody had a part."""
        columns = acknowledgements.c
        done = columns.answer == Answer.ACKNOWLEDGED
        aligned = func.max(case((done, columns.answered_at)))
        told = (func.sum(case((done, 1), else_=0)), func.count(), func.min(columns.asked_at), aligned)
        query = select(columns.run_id, columns.number, *told)
        query = query.where(tuple_(columns.run_id, columns.number).in_(of)).group_by(columns.run_id, columns.number)
        with self._database.reading() as connection:
            rows = connection.execute(query)
            return {
                (run, number): AcknowledgedParts(int(acknowledged), every, asked, aligned)
                for run, number, acknowledged, every, asked, aligned in rows
            }

    def completed(self, pipeline: str, most: int) -> tuple[CheckpointRecord, ...]:
        """The newest checkpoints that were completed, also those that newer ones have replaced."""
        done = checkpoints.c.state == CheckpointState.COMPLETED
        return read_all(self._database, CheckpointRecord, _newest_first(pipeline).where(done).limit(most))

    def covered(self, of: CheckpointRecord) -> Mapping[str, Amount]:
        """What a checkpoint has of each stage, by its id: the newest partitions at that moment, if they can be read.
        Nothing while nobody knows up to which row it goes.
        """
        this = (checkpoints.c.run_id == of.run_id, checkpoints.c.number == of.number)
        columns, covers = partitions.c, select(checkpoints.c.covers).where(*this).scalar_subquery()
        place = (columns.pipeline == of.pipeline, columns.interval == of.interval, columns.id <= covers)
        newest = select(func.max(columns.id)).where(*place).group_by(columns.stage, columns.partition)
        told = (func.count(), func.sum(columns.rows), func.sum(bytes_of(columns.files)))
        readable = (columns.id.in_(newest), columns.state == PartitionState.CONSUMABLE)
        query = select(columns.stage, *told).where(*readable).group_by(columns.stage).order_by(columns.stage)
        with self._database.reading() as connection:
            return {stage: Amount(n, int(rows), int(size)) for stage, n, rows, size in connection.execute(query)}


def _is_savepoint() -> ColumnElement[bool]:
    return checkpoints.c.savepoint.is_not(None)


def _newest_first(pipeline: str) -> Select[tuple[object, ...]]:
    columns = checkpoints.c
    order = (columns.triggered_at.desc(), columns.run_id, columns.number.desc())
    return select(checkpoints).where(columns.pipeline == pipeline).order_by(*order)
