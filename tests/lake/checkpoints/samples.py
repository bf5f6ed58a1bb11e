"""Checkpoints of a small pipeline, and a way to be at work in the middle of somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import Files, files_at
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Input, Pipeline, Stage
from stagehold.spec.settings.source import Source

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=10_000)  # nothing in the lake is older
RUN = CheckpointedRun("sample", "2026-01-01", "run")
PIPELINE = Pipeline(
    name="sample",
    file="sample.yaml",
    params={"ünïcode": [1.5, None, "\x00"]},
    stages=(
        Stage(
            name="a",
            job="jobs.x:a",
            source=Source(kind="parquet", path="/raw/a", splits=2),
            partitions=2,
            max_parallelism=32768,
        ),
        Stage(name="b", job="jobs.x:b", inputs=(Input(stage="a"),), partitions=2, max_parallelism=32768),
    ),
)
SHAPES = stage_shapes(PIPELINE)


def record(partition: int, wave: int = 0, state: PartitionState = PartitionState.CONSUMABLE) -> PartitionRecord:
    return PartitionRecord(
        Cell("sample", "a", "2026-01-01"),
        partition,
        state,
        "run",
        "run.a.1",
        1,
        wave,
        "/lake/a",
        wave,
        (DataFile(f"_data/run.a.1/{wave}/{partition}.parquet", 100, 10),),
        10,
        f"print {partition}",
        "key",
        NOW + timedelta(seconds=wave),
        seconds=0.5,
    )


def verdict(of: PartitionRecord) -> GateResult:
    return GateResult(of.cell, of.partition, of.attempt_id, "suite", "not_null", True, "10", of.recorded_at)


def stage(records: Iterable[PartitionRecord], parallelism: int = 2_000) -> StageSnapshot:
    every = tuple(records)
    return StageSnapshot(SHAPES[0], parallelism, 32768, every, tuple(map(verdict, every)))


def checkpoint(number: int, *stages: StageSnapshot, run_id: str = "run") -> Checkpoint:
    return Checkpoint(
        number,
        SnapshotKind.CHECKPOINT,
        "sample",
        "2026-01-01",
        run_id,
        NOW + timedelta(minutes=number),
        stages,
    )


def stored(lake: str, files: Callable[[str], Files] = files_at) -> StoredCheckpoints:
    return StoredCheckpoints(lake, RUN, files)


def interrupted(at: int, by: Callable[[], None]) -> Callable[[str], Files]:
    """Files with which something else happens right before the ``at``th call that changes or reads them."""

    def opened(uri: str) -> Files:
        kind = type(files_at(uri))
        calls = iter(range(1_000_000))

        def told(name: str) -> Callable[..., object]:
            def call(self: Files, *given: object) -> object:
                if next(calls) == at:
                    by()
                return getattr(kind, name)(self, *given)

            return call

        names = ("facts", "read", "create", "remove")
        return type("Interrupted", (kind,), {name: told(name) for name in names})(uri)

    return opened


def changed(partitions, wave):
    """A stage with these partitions as another wave made them."""
    return stage(record(partition, wave) for partition in partitions)
