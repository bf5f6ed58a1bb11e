"""A run of which many partitions are on record, without any data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from stagehold.chronicle.chronicle import open_ledger
from stagehold.ledger.leases import Heartbeat
from stagehold.model.checkpoint_records import CheckpointTrigger, SavepointRequest
from stagehold.model.records import Cell, DataFile, PartitionRecord, Run, RunState
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import take_coordinator_lease
from stagehold.run.checkpoints.run_checkpoints import RunCheckpoints
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.planning.planning import RunRequest
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

OF_A_WAVE = 20
STAGES = 4  # since one may have no more than 32,768 partitions
AT_ONCE = 5_000


class RecordedRun:
    """A run with so many partitions on record, and a checkpoint of all of them."""

    def __init__(self, folder: Path, partitions: int) -> None:
        folder.mkdir()
        self._settings = replace(load_settings(), home=str(folder))
        self._pipeline, self._partitions = _wide(partitions, self._settings), partitions
        self._ledger = open_ledger(self._settings)
        self._lease = self._ledger.leases.take("bench/day/wide", None, "bench", 3600, lambda _: True)
        self._ledger.runs.start(Run("bench", "bench", "day", "cli", RunState.CREATED, datetime.now(UTC)))
        for first in range(0, partitions, AT_ONCE):
            self._record(range(first, min(first + AT_ONCE, partitions)), 0)
        self.take()

    def end_wave(self, wave: int) -> None:
        """As when a wave of `OF_A_WAVE` partitions is recorded."""
        self._record(range(wave * OF_A_WAVE, (wave + 1) * OF_A_WAVE), wave + 1)

    def take(self) -> None:
        """A checkpoint."""
        run = self._ledger.runs.get("bench")
        lease = take_coordinator_lease(run, self._place)
        with Heartbeat(self._ledger.leases, lease, 3600) as heartbeat:
            request = RunRequest(self._pipeline, "bench", "day", {})
            _take_one(RunCheckpoints(run, request, self._place, heartbeat))
        self._ledger.leases.release(lease)

    def savepoint(self, name: str) -> None:
        """A savepoint, as the command makes it."""
        asked = SavepointRequest(name, "bench", False, "bench", "", datetime.now(UTC))
        create_savepoint(asked, self._pipeline, self._place)

    @property
    def _place(self) -> Workplace:
        engine, faults = SparkEngine(self._settings, _quiet), Faults(self._settings.home_path, "day")
        return Workplace(self._ledger, self._settings, _quiet, engine, faults)

    def _record(self, partitions: range, wave: int) -> None:
        self._ledger.partitions.record([self._made(partition, wave) for partition in partitions], self._lease)

    def _made(self, partition: int, wave: int) -> PartitionRecord:
        return PartitionRecord(
            cell=Cell("bench", self._pipeline.stages[partition % STAGES].id, "day"),
            partition=partition // STAGES,
            state=PartitionState.CONSUMABLE,
            run_id="bench",
            attempt_id="bench.wide.1",
            epoch=1,
            wave=wave,
            table=f"{self._settings.lake_uri}/stages/bench/wide/day",
            version=wave,
            files=(DataFile(f"_data/bench.wide.1/{wave}/_partition={partition}/part-0.parquet", 4096, 100),),
            rows=100,
            fingerprint=f"c-100-{partition}-{wave}",
            compute_key="key",
            recorded_at=datetime.now(UTC),
        )


def _take_one(checkpoints: RunCheckpoints) -> None:
    kept = [entry.id for entry in checkpoints.store.entries]
    record = checkpoints.begin(checkpoints.next_number, CheckpointTrigger.PERIODIC)
    manifest, covers = checkpoints.write(record)
    checkpoints.complete(record, manifest, covers)
    for number in kept:
        checkpoints.discard(number, record.number)


def _wide(partitions: int, settings: Settings) -> Pipeline:
    source = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": partitions // STAGES}
    stages = {f"wide_{number}": {"job": "jobs.tpch:customer", "source": source} for number in range(STAGES)}
    declared = {"pipeline": "bench", "stages": stages}
    return build_pipeline(declared, project=Path(settings.project), suites=Path(settings.suites))


def _quiet(line: str) -> None:
    """Progress is for people."""
