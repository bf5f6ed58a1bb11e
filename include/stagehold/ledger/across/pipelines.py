"""Many pipelines at once: as many queries for a hundred of them as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import func, select, tuple_

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import run_from
from stagehold.ledger.database.schema import partitions, runs
from stagehold.model.records import PartitionState, Run

Place = tuple[str, str]  # pipeline and interval
StageCounts = Mapping[str, Mapping[PartitionState, int]]


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
                found[row["pipeline"]].append(run_from(row))
        return {pipeline: tuple(some) for pipeline, some in found.items()}

    def counts(self, places: Collection[Place]) -> Mapping[Place, StageCounts]:
        """How many partitions of each stage, by its id, are in each state now; nothing of an interval without any."""
        columns = partitions.c
        group = (columns.pipeline, columns.interval, columns.stage, columns.state)
        newest = select(func.max(columns.id)).where(tuple_(columns.pipeline, columns.interval).in_(places))
        newest = newest.group_by(columns.pipeline, columns.interval, columns.stage, columns.partition)
        query = select(*group, func.count()).where(columns.id.in_(newest)).group_by(*group)
        found: dict[Place, dict[str, dict[PartitionState, int]]] = {}
        with self._database.reading() as connection:
            for pipeline, interval, stage, state, count in connection.execute(query):
                found.setdefault((pipeline, interval), {}).setdefault(stage, {})[state] = count
        return found
