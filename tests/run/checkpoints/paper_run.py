"""Regions of a small pipeline whose waves take as long as a test says; no Spark, all else is real."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.ledger.blank import lay_blank_ledger
from tests.run.protocol.paper_spark import PaperCommitter, PaperEngine, PaperSession

from stagehold.chronicle.chronicle import open_ledger
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.store.files import FolderFiles
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import Acknowledgement, CheckpointRecord
from stagehold.model.records import Attempt
from stagehold.plan.split.regions import stage_regions
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.here.region import work_on
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

_FORKS = multiprocessing.get_context("forkserver")  # what has imported all that they need, and has no threads
_FORKS.set_forkserver_preload([__name__])
PIPELINE, INTERVAL, RUN = "paper", "2026-11-20", "r"
LEFT, RIGHT = "left", "right"  # each a region of its own, with a source of its own
PARTITIONS = 12  # six waves of two
JOBS = (
    "from stagehold import stage\n\n"
    + "".join(f"@stage\ndef {one}(ctx, source): ...\n\n" for one in (LEFT, RIGHT))
    + """\
from pathlib import Path

def note(ctx):
    here = Path(__file__).parent
    if (here / "refuse").exists():
        raise RuntimeError("not now")
    with (here / "told").open("a") as told:
        told.write(f"{ctx.number} {len(ctx.partitions)}\\n")
"""
)
Started = list[ForkServerProcess]  # regions that a test has begun
Pace = Callable[[str, int], None]  # is called in each wave with the stage and the wave's number


def no_haste(stage: str, wave: int) -> None:
    time.sleep(0.1)


class PacedSession(PaperSession):
    pace: Pace = staticmethod(no_haste)

    def write(self, frame: Mapping[int, Any], files: WaveFiles, unjudged: object = None) -> StagedWave:
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
    noted: bool = False  # whether the left stage's function notes the checkpoints of which it is told
    _open: ExitStack = field(default_factory=ExitStack)

    @staticmethod
    def make(
        folder: Path, stages: Sequence[str] = (LEFT, RIGHT), *, noted: bool = False, **checkpoint: Any
    ) -> PaperRun:
        project = folder / "project"
        (project / "suites").mkdir(parents=True, exist_ok=True)
        (project / "paper_jobs.py").write_text(JOBS)
        run = PaperRun(settings_of(folder), checkpoint, stages, noted=noted)
        for partition in range(PARTITIONS):
            path = Path(run.settings.lake_uri, "raw", f"{partition}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"amount": pa.array([partition], pa.int64())}), path)
        lay_blank_ledger(run.settings.home_path / "ledger.db")
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
            "stages": {
                stage: {
                    "job": f"paper_jobs:{stage}",
                    "source": source,
                    **({"on_complete": "paper_jobs:note"} if self.noted and stage == LEFT else {}),
                }
                for stage in self.stages
            },
        }
        return build_pipeline(declaration, project=Path(self.settings.project), suites=Path(self.settings.suites))

    @property
    def request(self) -> RunRequest:
        return RunRequest(self.pipeline, RUN, INTERVAL, {})

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with open_ledger(self.settings) as ledger, ledger.kept_open():
            yield ledger

    @cached_property
    def seen(self) -> Ledger:
        """For who waits for something in it: to open it takes longer than to look, a hundred times a second."""
        ledger = open_ledger(self.settings)
        self._open.enter_context(ledger.kept_open())
        return ledger

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
        (region,) = (region for region in stage_regions(self.pipeline) if region.name == stage)
        return RegionTask(self.request, region, f"{launcher}/{RUN}/{stage}", launcher, again=again)

    def start(self, stage: str, seconds: float, tear: int = 0) -> ForkServerProcess:
        """The same in a process of its own, as an Airflow task is one, each of whose waves takes so long.

        :param tear: the number of a checkpoint while whose manifest it writes it is killed.
        """
        process = _FORKS.Process(
            target=_work, args=(self.settings.home_path.parent, self.checkpoint, stage, seconds, tear, self.noted)
        )
        process.start()
        return process

    @property
    def notes(self) -> list[tuple[int, int]]:
        """The checkpoints of which the left stage's function was told, each with how many partitions it had."""
        lines = Path(self.settings.project, "told").read_text().splitlines()
        return [(int(number), int(partitions)) for number, partitions in map(str.split, lines)]

    @property
    def records(self) -> tuple[CheckpointRecord, ...]:
        return self.seen.checkpoints.of_run(RUN)

    @property
    def acknowledgements(self) -> tuple[Acknowledgement, ...]:
        return self.seen.acknowledgements.of_run(RUN)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return self.seen.attempts.of_run(RUN)

    @property
    def stored(self) -> StoredCheckpoints:
        return StoredCheckpoints(self.settings.lake_uri, CheckpointedRun(PIPELINE, INTERVAL, RUN))

    def until(self, holds: Callable[[], object], seconds: float = 120) -> None:
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


def _work(folder: Path, checkpoint: Mapping[str, Any], stage: str, seconds: float, tear: int, noted: bool) -> None:
    run = PaperRun(settings_of(folder), checkpoint, noted=noted)
    if tear:
        tear_manifest(tear)
    try:
        run.work(stage, lambda stage, wave: time.sleep(seconds))
    finally:
        print("\n".join(run.said), file=sys.stderr)
