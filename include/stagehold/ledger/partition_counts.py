"""Partition counts: into how many partitions a stage with `partitions: auto` is cut for an interval."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import partition_count_from, partition_count_row
from stagehold.ledger.database.schema import partition_counts
from stagehold.model.records import PartitionCount


class PartitionCounts:
    """The `partition_counts` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decided(self, pipeline: str, interval: str) -> Mapping[str, PartitionCount]:
        """What was decided for the interval, by stage id."""
        columns = partition_counts.c
        query = select(partition_counts).where(columns.pipeline == pipeline, columns.interval == interval)
        with self._database.reading() as connection:
            found = (partition_count_from(row) for row in connection.execute(query).mappings())
            return {count.cell.stage: count for count in found}

    def decide(self, count: PartitionCount) -> PartitionCount:
        """Record ``count`` unless one is there; returns the one that stands, which is the first for ever."""
        row = partition_count_row(count)
        columns = partition_counts.c
        standing = select(partition_counts).where(
            *(columns[name] == row[name] for name in ("pipeline", "interval", "stage"))
        )
        with self._database.writing() as connection:
            new = self._database.insert(partition_counts).values(row).on_conflict_do_nothing()
            if connection.execute(new).rowcount:
                self._database.tell(count)
            return partition_count_from(connection.execute(standing).mappings().one())
