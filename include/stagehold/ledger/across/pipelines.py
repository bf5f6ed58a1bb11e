"""Many pipelines at once: as many queries for a hundred of them as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select, tuple_

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import record_of
from stagehold.ledger.database.schema import partition_counts, partitions, runs
from stagehold.model.records import Run
from stagehold.model.standing import PartitionState, StateCounts

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
        """So many runs of each that started last, the newest first; nothing of a pipeline that never ran."""
        newest_first = (runs.c.started_at.desc(), runs.c.run_id.desc())
        place = func.row_number().over(partition_by=runs.c.pipeline, order_by=newest_first).label("place")
        ranked = select(runs.c.run_id, place).where(runs.c.pipeline.in_(pipelines)).subquery()
        query = select(runs).join(ranked, runs.c.run_id == ranked.c.run_id).where(ranked.c.place <= each)
        found: defaultdict[str, list[Run]] = defaultdict(list)
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(*newest_first)).mappings():
                found[row["pipeline"]].append(record_of(Run, row))
        return {pipeline: tuple(some) for pipeline, some in found.items()}

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
    """Of one stage, without the partitions from ``end`` on."""
    columns = partitions.c
    cell = (columns.pipeline == place[0], columns.interval == place[1], columns.stage == stage)
    newest = select(func.max(columns.id)).where(*cell, columns.partition < end).group_by(columns.partition)
    query = select(columns.state, func.count()).where(columns.id.in_(newest)).group_by(columns.state)
    return {state: count for state, count in connection.execute(query)}
