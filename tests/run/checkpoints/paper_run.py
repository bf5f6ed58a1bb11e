"""Regions of a small pipeline whose waves take as long as a test says; no Spark, all else is real.

python -m tests.run.checkpoints.paper_run HOME STAGE SECONDS FIELDS works on one of them in a process of its own, as an
Airflow task does. With TEAR it is killed while it writes the manifest of that number.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.run.protocol.paper_spark import PaperCommitter, PaperEngine, PaperSession

from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.lake.chronicle import open_ledger
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.files import FolderFiles
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import Acknowledgement, CheckpointRecord
from stagehold.model.records import Attempt
from stagehold.plan.split.regions import stage_regions
from stagehold.run.attempt.region import work_on
from stagehold.run.attempt.task import RegionOutcome, RegionTask
from stagehold.run.faults import Faults
from stagehold.run.planning.planning import RunRequest
from stagehold.run.workplace import Workplace
from stagehold.settings import PROJECT, Settings
from stagehold.spec.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

PIPELINE, INTERVAL, RUN = "paper", "2026-11-20", "r"
LEFT, RIGHT = "left", "right"  # each a region of its own, with a source of its own
PARTITIONS = 8  # four waves of two
JOBS = "from stagehold import stage\n\n" + "".join(f"@stage\ndef {one}(ctx, source): ...\n\n" for one in (LEFT, RIGHT))
Pace = Callable[[str, int], None]  # is called in each wave with the stage and the wave's number


def no_haste(stage: str, wave: int) -> None:
    time.sleep(0.1)


class PacedSession(PaperSession):
    pace: Pace = staticmethod(no_haste)

    def write(self, frame: Mapping[int, Any], files: WaveFiles) -> StagedWave:
        self.pace(next(one for one in (LEFT, RIGHT) if f"/{one}" in files.location.uri), files.wave)
        return super().write(frame, files)


class PacedEngine(PaperEngine):
    def __init__(self, pace: Pace) -> None:
        session = PacedSession()
        session.pace = pace
        super().__init__(session)


@dataclass
class PaperRun:
    """One run: its settings, and attempts that work on its regions."""

    settings: Settings
    checkpoint: Mapping[str, Any]
    stages: Sequence[str] = (LEFT, RIGHT)
    said: list[str] = field(default_factory=list)

    @staticmethod
    def make(folder: Path, stages: Sequence[str] = (LEFT, RIGHT), **checkpoint: Any) -> PaperRun:
        project = folder / "project"
        (project / "suites").mkdir(parents=True, exist_ok=True)
        (project / "paper_jobs.py").write_text(JOBS)
        run = PaperRun(settings_of(folder), checkpoint, stages)
        for partition in range(PARTITIONS):
            path = Path(run.settings.lake_uri, "raw", f"{partition}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"amount": pa.array([partition], pa.int64())}), path)
        with run.ledger():
            return run

    @property
    def pipeline(self) -> Pipeline:
        splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
        source = {"kind": "parquet", "splits": splits}
        declaration = {
            "pipeline": PIPELINE,
            "wave": "1ms",
            "verify": "never",  # fingerprints are Spark's
            "restart": {"strategy": "fixed-delay", "attempts": 9, "delay": "1ms"},
            "checkpoint": dict(self.checkpoint),
            "stages": {stage: {"job": f"paper_jobs:{stage}", "source": source} for stage in self.stages},
        }
        return build_pipeline(declaration, project=Path(self.settings.project), suites=Path(self.settings.suites))

    @property
    def request(self) -> RunRequest:
        return RunRequest(self.pipeline, RUN, INTERVAL, {})

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with open_ledger(self.settings) as ledger:
            yield ledger

    def workplace(self, ledger: Ledger, pace: Pace = no_haste, faults: Faults | None = None) -> Workplace:
        return Workplace(
            ledger=ledger,
            settings=self.settings,
            progress=self.said.append,
            engine=PacedEngine(pace),
            faults=faults or Faults(self.settings.home_path, INTERVAL),
            committer=PaperCommitter(),
        )

    def work(
        self,
        stage: str = LEFT,
        pace: Pace = no_haste,
        faults: Faults | None = None,
        launcher: str = "cli",
        *,
        again: bool = False,
    ) -> RegionOutcome:
        """One attempt of the region, in this thread; ``again`` if the launcher tries by itself."""
        with self.ledger() as ledger:
            return work_on(self.task(stage, launcher, again=again), self.workplace(ledger, pace, faults))

    def task(self, stage: str, launcher: str, *, again: bool = False) -> RegionTask:
        (region,) = (one for one in stage_regions(self.pipeline) if one.name == stage)
        return RegionTask(self.request, region, f"{launcher}/{RUN}/{stage}", launcher, again=again)

    def start(self, stage: str, seconds: float, tear: int = 0) -> subprocess.Popen[str]:
        """The same in a process of its own, each of whose waves takes so long."""
        words = [str(self.settings.home_path.parent), stage, str(seconds), json.dumps(self.checkpoint), str(tear)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.run.checkpoints.paper_run", *words],
            cwd=PROJECT,
            text=True,
            stderr=subprocess.PIPE,
        )

    @property
    def records(self) -> tuple[CheckpointRecord, ...]:
        with self.ledger() as ledger:
            return ledger.checkpoints.of_run(RUN)

    @property
    def acknowledgements(self) -> tuple[Acknowledgement, ...]:
        with self.ledger() as ledger:
            return ledger.acknowledgements.of_run(RUN)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        with self.ledger() as ledger:
            return ledger.attempts.of_run(RUN)

    @property
    def stored(self) -> StoredCheckpoints:
        return StoredCheckpoints(self.settings.lake_uri, CheckpointedRun(PIPELINE, INTERVAL, RUN))

    def until(self, holds: Callable[[], object], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, (self.records, self.acknowledgements, self.said)
            time.sleep(0.01)


def settings_of(folder: Path) -> Settings:
    project = folder / "project"
    return Settings(
        home=str(folder / "home"),
        project=str(project),
        pipelines=str(project),
        suites=str(project / "suites"),
        spark_cores=1,  # a wave is two partitions
        lease_seconds=2,
    )


def tear_manifest(number: int) -> None:
    """Die in the middle of it."""
    create = FolderFiles.create

    def torn(self: FolderFiles, path: str, content: bytes) -> bool:
        if path == f"{number:010d}.json":
            (self._root / f".{path}.torn").write_bytes(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return create(self, path, content)

    FolderFiles.create = torn


if __name__ == "__main__":
    folder, stage, seconds, checkpoint, tear = sys.argv[1:]
    run = PaperRun(settings_of(Path(folder)), json.loads(checkpoint))
    if int(tear):
        tear_manifest(int(tear))
    try:
        run.work(stage, lambda stage, wave: time.sleep(float(seconds)))
    finally:
        print("\n".join(run.said), file=sys.stderr)
