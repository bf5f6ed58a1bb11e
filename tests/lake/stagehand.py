"""Does to one table what the region runner does, with rows a test can write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.lake.paper_table import records

from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.delta_log import open_table
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.staging import StagedWave, WaveFiles, stage_frame
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.measure import PartitionMetrics, measure
from stagehold.lake.read import read_partitions
from stagehold.lake.store.location import TableLocation
from stagehold.lake.tables import ensure_table
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

COLUMNS = "name string, amount bigint"
Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Stagehand:
    """``columns`` are the stage's own; rows are given by partition."""

    spark: SparkSession
    location: TableLocation
    columns: str = COLUMNS
    epoch: int = 1
    committer: Committer = StagedCommitter()  # noqa: RUF009 - it has no state

    def at(self, **changes: Any) -> Stagehand:
        return replace(self, **changes)

    def on(self, interval: str) -> Stagehand:
        cell = f"{self.location.cell.rpartition('/')[0]}/{interval}"
        return self.at(location=replace(self.location, cell=cell, interval=interval))

    @property
    def attempt_id(self) -> str:
        return f"run-{self.location.interval}.region.{self.epoch}"

    @property
    def claim(self) -> Claim:
        return Claim(self.epoch, self.attempt_id)

    def frame(self, rows: Mapping[int, Rows]) -> DataFrame:
        flat = [(*row, partition) for partition, some in rows.items() for row in some]
        return self.spark.createDataFrame(flat, f"{self.columns}, _partition int")

    def prepare(self) -> Stagehand:
        ensure_table(self.location, self.frame({}).schema, self.claim)
        self.committer.fence(self.location, self.claim)
        return self

    def stage(self, rows: Mapping[int, Rows], wave: int = 1) -> StagedWave:
        return stage_frame(self.frame(rows), WaveFiles(self.location, self.attempt_id, wave, tuple(sorted(rows))))

    def measure(self, staged: StagedWave, partitions: Sequence[int]) -> tuple[PartitionMetrics, ...]:
        return measure(self.spark, staged, self.schema, partitions)

    @property
    def schema(self) -> StructType:
        return self.frame({}).schema

    def wave(self, rows: Mapping[int, Rows], wave: int = 1) -> WaveCommit:
        """Write and measure; what is left is to publish."""
        staged = self.stage(rows, wave)
        partitions = tuple(
            CommittedPartition(
                record.partition, record.rows, record.fingerprint, "key", staged.files.get(record.partition, ())
            )
            for record in self.measure(staged, sorted(rows))
        )
        return WaveCommit("run", self.location.stage, self.attempt_id, self.epoch, wave, partitions, 100)

    def publish(self, rows: Mapping[int, Rows], wave: int = 1) -> list[PartitionRecord]:
        return records(self.location, self.committer.publish(self.location, self.wave(rows, wave)))

    def read(self, records: Sequence[PartitionRecord]) -> list[tuple[Any, ...]]:
        """(partition, the stage's own columns), sorted."""
        frame = read_partitions(self.spark, records)
        names = [name for name in frame.columns if not name.startswith("_")]
        return sorted(tuple(row) for row in frame.select("_partition", *names).collect())

    def seen_by_anybody(self) -> list[tuple[Any, ...]]:
        """(partition, the stage's own columns) of the table's newest version, read without Spark."""
        rows = self.handle().to_pyarrow_table().to_pylist()
        return sorted(
            (row["_partition"], *(value for name, value in row.items() if not name.startswith("_"))) for row in rows
        )

    def handle(self, version: int | None = None) -> DeltaTable:
        return open_table(self.location.uri, version)

    @property
    def version(self) -> int:
        return self.handle().version()
