"""Runs of one pipeline for many intervals, on a real SQLite ledger and a real folder lake, and what clears up behind
them.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.run.protocol.paper_spark import PaperCommitter, PaperEngine, Pauses, rows_of
from tests.run.protocol.stepper import Stepper, in_turn, pause
from tests.run.protocol.world import SteppedDatabase

from stagehold.chronicle.chronicle import LakeChronicle
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionRecord, Restore
from stagehold.model.standing import PartitionState
from stagehold.plan.split.regions import stage_regions
from stagehold.run.clearing.garbage_collector import Collected, Collector
from stagehold.run.clearing.interval_garbage import READERS_TIME, AgeLimits
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.here.region import work_on
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.settings.run_settings import ReleasePolicy

PIPELINE = "paper"
STAGES = ("drafts", "edits", "prints")  # each a region of its own
PARTITIONS = 3
JOBS = "from stagehold import stage\n\n" + "\n\n".join(
    f"@stage\ndef {name}(ctx, {given}): ..." for name, given in zip(STAGES, ("source", *STAGES), strict=False)
)
SUITE = "suite: sound\nexpectations:\n  - {type: expect_column_values_to_be_between, column: rows, min_value: 0}\n"
NO_TIME = timedelta(0)


class Nights:
    """Its lease seconds are so long that a lease ends when a test says so."""

    readers_time = READERS_TIME

    def __init__(self, folder: Path, release: ReleasePolicy = ReleasePolicy.RUN_END, retained: int = 1) -> None:
        self.settings = _settings(folder)
        self.pipeline = build_pipeline(
            _declaration(release, retained), project=Path(self.settings.project), suites=Path(self.settings.suites)
        )
        self.ledger = _open(self.settings)
        self.engine = PaperEngine()
        self.said: list[str] = []
        self.attempts: list[Stepper] = []
        for partition in range(PARTITIONS):
            self.write_source(partition, partition + 1)

    @property
    def workplace(self) -> Workplace:
        return Workplace(
            ledger=self.ledger,
            settings=self.settings,
            progress=self.said.append,
            engine=self.engine,
            faults=Pauses(self.settings.home_path, ""),
            committer=PaperCommitter(),
            sleep=lambda seconds: pause("waiting"),
            beside=in_turn,
        )

    def rewrite(self, stage: str, body: str) -> None:
        """Give the stage's function another body."""
        jobs = Path(self.settings.project, "paper_jobs.py")
        (line,) = (one for one in jobs.read_text().splitlines() if one.startswith(f"def {stage}("))
        jobs.write_text(jobs.read_text().replace(line, line.replace("...", body)))

    def declare(self) -> None:
        """Write the pipeline's file, for commands."""
        file = Path(self.settings.pipelines, f"{PIPELINE}.yaml")
        file.write_text(json.dumps(_declaration(self.pipeline.release, self.pipeline.checkpoint.retained)))

    def write_source(self, partition: int, amount: int) -> None:
        path = Path(self.settings.lake_uri, "raw", f"{partition}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"amount": pa.array([amount], pa.int64())}), path)
        moment = 10**18 + 10**6 * zlib.crc32(repr(amount).encode())
        os.utime(path, ns=(moment, moment))

    @property
    def sources(self) -> list[int]:
        files = (Path(self.settings.lake_uri, "raw", f"{partition}.parquet") for partition in range(PARTITIONS))
        return [pq.read_table(file)["amount"][0].as_py() for file in files]

    def begin(
        self,
        interval: str,
        stage: str,
        run: str = "r",
        restore: str | None = None,
        snapshot: str | None = None,
        **asked_so: Any,
    ) -> Stepper:
        """Begin an attempt of a stage; it stands before its first step. ``asked_so`` are other facts of the restore."""
        run_id = f"{run}.{interval}"
        identity = f"{run_id}/{restore or snapshot}"[-100:]
        asked = Restore(run_id, identity, restore, datetime.now(UTC), snapshot=snapshot, **asked_so)
        (own,) = (region for region in stage_regions(self.pipeline) if region.name == stage)
        request = RunRequest(self.pipeline, run_id, interval, {}, restore=asked if restore or snapshot else None)
        if request.restore:
            request = replace(request, restore=self.ledger.restores.ask(request.restore))
        task = RegionTask(request, own, f"cli/{run_id}/{stage}", "cli")
        self.attempts.append(Stepper(lambda: work_on(task, self.workplace)))
        return self.attempts[-1]

    def run(
        self, interval: str, run: str = "r", restore: str | None = None, snapshot: str | None = None, **asked_so: Any
    ) -> None:
        """Let every stage's attempt go to its end."""
        for stage in STAGES:
            attempt = self.begin(interval, stage, run, restore, snapshot, **asked_so)
            attempt.go_to("its end", most=2000)
            if attempt.error is not None:
                raise attempt.error
            assert attempt.ended, attempt.at

    def collector(self, older_than: timedelta = NO_TIME, *, dry_run: bool = False) -> Collector:
        return Collector(self.workplace, AgeLimits(datetime.now(UTC) - older_than, self.readers_time), dry_run)

    def collect(self, older_than: timedelta = NO_TIME, *, dry_run: bool = False) -> Collected:
        return self.collector(older_than, dry_run=dry_run).collect([self.pipeline])

    def end_leases(self, of: str = "") -> None:
        """As when no heart has beaten for long; ``of`` those whose holder's name begins so."""
        for name in self.ledger.facts.epochs():
            lease = self.ledger.leases.get(name)
            if lease and lease.holder.startswith(of):
                self.ledger.leases.release(lease)

    def records(self, interval: str, stage: str) -> tuple[PartitionRecord, ...]:
        return self.ledger.partitions.newest_of(PIPELINE, interval).get(self.pipeline.stage(stage).id, ())

    def states(self, interval: str) -> dict[str, set[PartitionState]]:
        return {stage: {record.state for record in self.records(interval, stage)} for stage in STAGES}

    def published(self, interval: str) -> list[int]:
        """Amounts by partition, as anybody reads them."""
        uri = table_location(self.settings.lake_uri, PIPELINE, self.pipeline.stage("prints"), interval).uri
        rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
        return [
            one["amount"] for one in sorted(rows, key=lambda row: row["_partition"]) if one["_interval"] == interval
        ]

    @property
    def expected(self) -> list[int]:
        return [4 * amount for amount in self.sources]

    def files(self, interval: str) -> dict[str, list[str]]:
        """Data files of the stages' own tables that are there."""
        folders = {stage: Path(self._own_table(interval, stage)) for stage in STAGES[:-1]}
        return {stage: sorted(map(str, folder.glob("_data/**/*.parquet"))) for stage, folder in folders.items()}

    def _own_table(self, interval: str, stage: str) -> str:
        return table_location(self.settings.lake_uri, PIPELINE, self.pipeline.stage(stage), interval).uri

    def check(self) -> None:
        """Whatever counts can be read: what is consumable, and what a checkpoint that is kept points to."""
        for run in self.ledger.runs.newest_of_intervals(PIPELINE):
            for records in self.ledger.partitions.newest_of(PIPELINE, run.interval).values():
                _readable(records)
            for stored, number in self.kept(run.interval):
                for stage in stored.read_checkpoint(number).stages:
                    _readable(stage.partitions)

    def kept(self, interval: str) -> Iterator[tuple[StoredCheckpoints, int]]:
        for checkpoint in self.ledger.checkpoints.of_interval(PIPELINE, interval):
            if checkpoint.kept:
                run = CheckpointedRun(PIPELINE, interval, checkpoint.run_id)
                yield StoredCheckpoints(self.settings.lake_uri, run), checkpoint.number


def _readable(records: tuple[PartitionRecord, ...]) -> None:
    for record in records:
        if record.state is PartitionState.CONSUMABLE:
            assert len(rows_of(record)) == record.rows


def _open(settings: Settings) -> Ledger:
    return Ledger(SteppedDatabase(settings.ledger_url, str, LakeChronicle(settings.lake_uri)))


def _settings(folder: Path) -> Settings:
    project = folder / "project"
    (project / "suites").mkdir(parents=True)
    (project / "paper_jobs.py").write_text(JOBS)
    (project / "suites" / "sound.yaml").write_text(SUITE)
    return Settings(
        home=str(folder / "home"),
        project=str(project),
        pipelines=str(project),
        suites=str(project / "suites"),
        spark_cores=1,  # a wave is two partitions
        lease_seconds=3600,
        sweep_after_seconds=0,
    )


def _declaration(release: ReleasePolicy, retained: int) -> Mapping[str, object]:
    splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
    return {
        "pipeline": PIPELINE,
        "wave": "1ms",
        "verify": "never",  # fingerprints are Spark's
        "execution_mode": "batch_forced",
        "release": str(release),
        "retain": {"intervals": 3},
        "checkpoint": {"retained": retained},
        "stages": {
            "drafts": {
                "job": "paper_jobs:drafts",
                "source": {"kind": "parquet", "splits": splits},
                "gate": "sound",
            },
            "edits": {"job": "paper_jobs:edits", "inputs": {"drafts": "forward"}},
            "prints": {
                "job": "paper_jobs:prints",
                "inputs": {"edits": "forward"},
                "output": {"type": "blocking_persistent", "table": "marts.prints"},
            },
        },
    }
