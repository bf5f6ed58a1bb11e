"""The engine of every run: one Spark Connect session for each attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stagehold.gates.judge import preload
from stagehold.model.records import Attempt
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.planning.task import RegionTask
from stagehold.run.stage.attempt_session import session_of
from stagehold.run.stage.wave_session import SparkStageSession
from stagehold.settings import Settings
from stagehold.spark.session.project_modules import send_project
from stagehold.spark.session.sessions import release_session, session_id


class SparkEngine:
    """What `run.equipment.engine.Engine` asks for."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._settings, self._progress = settings, progress

    @contextmanager
    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> Iterator[SparkStageSession]:
        stages = [task.pipeline.stage(name) for name in task.region.stages]
        if any(stage.gate for stage in stages):
            preload()
        TIMINGS.passed(Lap.REGION)
        dead, stall_timeout = [one.attempt_id for one in died], task.pipeline.stall_timeout
        with session_of(attempt.attempt_id, dead, self._settings, self._progress, stall_timeout) as spark:
            TIMINGS.passed(Lap.SESSION)
            send_project(spark, (stage.job for stage in stages), Path(self._settings.project))
            TIMINGS.passed(Lap.MODULES)
            yield SparkStageSession(spark, self._settings)

    def release(self, attempt: Attempt) -> None:
        release_session(self._settings, session_id(self._settings, attempt.attempt_id))
