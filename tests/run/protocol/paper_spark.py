"""What Spark does in an attempt, done by pyarrow in milliseconds: tables, frames, files and metrics of small integers.

Everything else of an attempt is the real thing: leases, planning, adoption, healing, fences, commits, records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType
from tests.lake.paper_table import write_file
from tests.run.protocol.stepper import pause

from stagehold.gates.judge import Verdict
from stagehold.gates.suite import Severity, Suite
from stagehold.lake.location import TableLocation
from stagehold.lake.measure import ColumnMetrics, PartitionMetrics
from stagehold.lake.staging import StagedWave
from stagehold.model.records import DataFile, PartitionRecord
from stagehold.model.spec import Pipeline, Stage
from stagehold.plan.resume import Action, Decision
from stagehold.run import attempt, lease_wait, waves
from stagehold.run.sources import Sources

Amounts = tuple[int, ...]


def refused(amount: int) -> bool:
    """By the gates of both stages: debts, which both see, and what is large only after it was doubled."""
    return amount < 0 or amount >= 1000


@dataclass(frozen=True)
class PaperFrames:
    """Stands for the builder of Spark frames: a frame is the amounts of each partition."""

    pipeline: Pipeline
    decisions: Mapping[str, Sequence[Decision]]
    sources: Sources
    spark: object
    context: object
    project: str
    intermediates: object
    calls: Mapping[str, object] = field(default_factory=dict)  # no plans of Spark's to inspect
    isolations: Mapping[str, object] = field(default_factory=dict)

    def check(self, stage: Stage, partition: int) -> StructType:
        return StructType().add("name", StringType()).add("amount", LongType()).add("_partition", IntegerType())

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> dict[int, Amounts]:
        return {partition: self._amounts(stage, partition) for partition in partitions}

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        return ()

    def is_arranged(self, stage: Stage) -> bool:
        return True

    def _amounts(self, stage: Stage, partition: int) -> Amounts:
        if stage.source is not None:
            files = self.sources.of(stage).splits[partition].files
            return tuple(amount for file in files for amount in pq.read_table(file.path)["amount"].to_pylist())
        (decision,) = (one for one in self.decisions[stage.inputs[0].stage] if one.partition == partition)
        assert decision.record is not None
        assert decision.action is Action.REUSE, f"{stage.name} reads {decision}"
        return tuple(2 * amount for _, amount in rows_of(decision.record))


@dataclass
class PaperWriter:
    """Stands for Spark's writes, and remembers what each wave was told to hold."""

    staged: dict[tuple[str, int, int], Amounts] = field(default_factory=dict)

    def stage_frame(
        self,
        frame: Mapping[int, Amounts],
        location: TableLocation,
        attempt_id: str,
        wave: int,
        partitions: Sequence[int],
        sort_by: Sequence[str] = (),
        *,
        arranged: bool = False,
        rows_per_file: int = 0,
    ) -> StagedWave:
        files: dict[int, tuple[DataFile, ...]] = {}
        for partition, amounts in frame.items():
            self.staged[attempt_id, wave, partition] = amounts
            files[partition] = write_file(location.uri, attempt_id, wave, partition, [(attempt_id, amount) for amount in amounts])
            pause("a file is written")
        return StagedWave(location.uri, f"_data/{attempt_id}/{wave}", {partition: some for partition, some in files.items() if some})


def measure(
    spark: object, staged: StagedWave, schema: object, partitions: Sequence[int], judged: Collection[str]
) -> tuple[PartitionMetrics, ...]:
    return tuple(_metrics(partition, _read(staged.uri, staged.files.get(partition, ()))) for partition in partitions)


def judge(metrics: Sequence[PartitionMetrics], suite: Suite) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(one.partition, "not refused", not (refused(column.minimum) or refused(column.maximum)), "", Severity.CRITICAL)
        for one in metrics
        for column in one.columns
        if column.minimum is not None
    )


def rows_of(record: PartitionRecord) -> list[tuple[str, int]]:
    return _read(record.table, record.files)


def _metrics(partition: int, rows: Sequence[tuple[str, int]]) -> PartitionMetrics:
    amounts = sorted(amount for _, amount in rows)
    range_of = (amounts[0], amounts[-1], sum(amounts)) if amounts else (None, None, None)
    return PartitionMetrics(partition, len(amounts), f"content {amounts}", (ColumnMetrics("amount", 0, *range_of),))


def _read(uri: str, files: Sequence[DataFile]) -> list[tuple[str, int]]:
    for file in files:
        Path(uri, file.path).stat()  # a file that is lost is not read from the cache
    return [row for file in files for row in read_file(f"{uri}/{file.path}")]


@lru_cache(maxsize=4096)
def read_file(path: str) -> tuple[tuple[str, int], ...]:
    """Its rows; files are never written twice."""
    table = pq.read_table(path, partitioning=None)
    return tuple(zip(table["name"].to_pylist(), table["amount"].to_pylist(), strict=True))


@contextmanager
def _no_session(*facts: object) -> Iterator[None]:
    """Nobody's session is released, so a zombie can do as much harm as it ever could."""
    pause("session")
    yield


def install(patch: pytest.MonkeyPatch, writer: PaperWriter) -> None:
    """Put them in place."""
    patch.setattr(attempt, "FrameBuilder", PaperFrames)
    patch.setattr(attempt, "session_of", _no_session)
    patch.setattr(attempt, "send_project", lambda *facts: None)
    patch.setattr(attempt, "preload", lambda: None)
    patch.setattr(waves, "stage_frame", writer.stage_frame)
    patch.setattr(waves, "measuring_session", lambda spark: spark)
    patch.setattr(waves, "measure", measure)
    patch.setattr(waves, "judge", judge)
    patch.setattr(lease_wait, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda seconds: pause("waiting")))
    for module in (attempt, waves):
        patch.setattr(module, "reach", lambda home, point, name, wave: pause(str(point)))
