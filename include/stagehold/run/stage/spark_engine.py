"""The engine of every run: one Spark Connect session for each attempt, in which its waves are computed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.extras import Extra, require
from stagehold.gates.judge import (
    Measured,
    Unmet,
    imported_meanwhile,
    judge_together,
    measure_and_judge,
    split_rows,
)
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.catalog_entry import register
from stagehold.lake.commit.committer import Committer, committer_for
from stagehold.lake.commit.staging import StagedWave, WaveFiles, stage_frame
from stagehold.lake.measure import (
    FEW,
    Content,
    PartitionMetrics,
    RecordedContent,
    StagedContent,
    fingerprints,
    measure,
    observing,
    read_log,
    state_fingerprints,
)
from stagehold.lake.store.location import TableLocation
from stagehold.model.pulse import QueryStage
from stagehold.model.records import Attempt, DataFile, PartitionRecord
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.functions.stage_inputs import Intermediates, Reading
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spark.connect import kept_by_spark
from stagehold.spark.session.project_modules import as_active, send_project
from stagehold.spark.session.sessions import (
    break_off,
    measuring_session,
    open_session,
    release_session,
    session_id,
    translate,
)
from stagehold.spark.session.watchdog import CallClock, Watchdog, dump_stacks
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from stagehold.run.functions.frame_builder import FrameBuilder


class SparkEngine:
    """What `run.equipment.engine.Engine` asks for."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._settings, self._progress = settings, progress

    @contextmanager
    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> Iterator[SparkStageSession]:
        stages = [task.pipeline.stage(name) for name in task.region.stages]
        gated = any(stage.gate for stage in stages)
        if gated:
            require(Extra.GATES)  # before anything is computed that could not be judged
        TIMINGS.passed(Lap.REGION)
        dead, stall_timeout = [attempt.attempt_id for attempt in died], task.pipeline.stall_timeout
        clock = CallClock()
        with session_of(attempt.attempt_id, dead, self._settings, self._progress, stall_timeout, clock) as spark:
            TIMINGS.passed(Lap.SESSION)
            send_project(spark, (stage.entries for stage in stages), Path(self._settings.project))
            TIMINGS.passed(Lap.MODULES)
            yield SparkStageSession(spark, self._settings, clock, gated=gated, progress=self._progress)

    def release(self, attempt: Attempt) -> None:
        release_session(self._settings, session_id(self._settings, attempt.attempt_id))


@contextmanager
def session_of(
    attempt_id: str,
    died: Sequence[str],
    settings: Settings,
    progress: Progress,
    stall_timeout: timedelta,
    clock: CallClock | None = None,
) -> Iterator[SparkSession]:
    """A session of the attempt's own, which is the active one in the block. Those of attempts which did not say goodbye
    are released first.

    Errors of a dead server or a released session come out as the StageholdError they stand for.

    :raises CallStalled: a call made no progress for ``stall_timeout``, and was interrupted.
    """
    for earlier in died:
        release_session(settings, session_id(settings, earlier))
    name, clock = session_id(settings, attempt_id), clock or CallClock()
    dump, interrupt = partial(dump_stacks, settings, attempt_id), partial(break_off, settings, name)
    watchdog = Watchdog(clock, stall_timeout.total_seconds(), dump=dump, interrupt=interrupt)
    try:
        spark = open_session(settings, name, clock=clock)
        progress(f"opened Spark session {name}")
        with watchdog, as_active(spark):
            yield spark
    except Exception as error:
        known = watchdog.stalled or translate(error)
        if known is None or known is error:
            raise
        raise known from error
    finally:
        release_session(settings, name)


# To open a file again costs Spark some 2 ms, and to keep a row as much as to read it a few times: what is in few files,
# or is much, is read again for each query of a gate.
MANY_FILES = 100
MOST_KEPT = 64 * 1024 * 1024  # bytes of the files; in Spark's storage they are about seven times as many
MEASURED = "stagehold-measured"  # how the names of observations begin by which waves are measured

log = logging.getLogger(__name__)


class SparkStageSession:
    """What `run.equipment.workplace.Session` asks for. Spark keeps rows of files with ``most_kept`` bytes at most;
    ``gated`` says that what is written will be judged.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        clock: CallClock | None = None,
        most_kept: int = MOST_KEPT,
        *,
        gated: bool = False,
        progress: Progress = log.warning,
    ) -> None:
        self._spark, self._settings, self._intermediates = spark, settings, Intermediates()
        self._clock, self._most_kept, self._gated, self._progress = clock or CallClock(), most_kept, gated, progress
        self._observed: dict[str, int] = {}  # by the newest query that wrote a frame
        self._measured: dict[str, Sequence[int]] = {}  # by queries that wrote waves, until these are measured
        self._clock.tell_observed = self._observe

    @property
    def application(self) -> str:
        """By which id the master knows what computes: it finds its logs, and ends it."""
        return self._spark.conf.get("spark.app.id") or "without an id"

    def report_stages(self, tell: Callable[[Sequence[QueryStage]], None]) -> None:
        self._clock.tell_stages = tell

    def frames(self, reading: Reading) -> FrameBuilder:
        from stagehold.run.functions.frame_builder import FrameBuilder

        return FrameBuilder(self._spark, reading, self._intermediates, self._observed)

    def committer(self, stage: Stage, location: TableLocation) -> Committer:
        only_writer = self._settings.only_spark_writer
        return committer_for(stage.output.committer, self._spark, location, only_writer=only_writer)

    def write(self, frame: DataFrame, files: WaveFiles, unjudged: StructType | None = None) -> StagedWave:
        self._observed.clear()
        name, observed = f"{MEASURED}/{files.location.uri}/{files.folder}", None
        if unjudged is not None and len(files.partitions) <= FEW:
            observed = partial(observing, schema=unjudged, partitions=files.partitions, name=name)
        with imported_meanwhile() if self._gated else nullcontext():
            return stage_frame(frame, files, observed)

    def _observe(self, name: str, values: Sequence[int]) -> None:
        if name.startswith(f"{MEASURED}/"):
            self._measured[name] = values
        elif values:
            self._observed[name] = values[0]

    def measure(
        self, staged: StagedWave, schema: StructType, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        spark = measuring_session(self._spark)
        content = StagedContent(staged, schema)
        if suite is None:
            return Measured(self._seen(content, partitions) or measure(spark, staged, schema, partitions))
        each = dict.fromkeys(partitions, seconds / len(partitions))
        rows = self._rows(content, [file for files in staged.files.values() for file in files])
        return measure_and_judge(rows, content, partitions, suite, each)

    def _seen(self, content: StagedContent, partitions: Sequence[int]) -> tuple[PartitionMetrics, ...]:
        """What the query that wrote the content observed of it, if that agrees with what the files say."""
        staged = content.staged
        written, *values = self._measured.pop(f"{MEASURED}/{staged.uri}/{staged.folder}", (None,))
        there = sum(content.rows(partition) for partition in partitions)
        if written is None or written == there:
            return content.observed(values, partitions) if values else ()
        told = f"{written} rows were written, and the files have {there}"
        self._progress(f"{staged.uri}/{staged.folder}: {told}; they are read to measure them")
        return ()

    def split(
        self, staged: StagedWave, schema: StructType, unmet: Sequence[Unmet], suite: Suite
    ) -> tuple[DataFrame, DataFrame]:
        partitions = sorted({number for _, numbers in unmet for number in numbers})
        frame = StagedContent(staged, schema).told_apart(measuring_session(self._spark), partitions)
        return split_rows(frame, unmet, suite)

    def judge(self, records: Sequence[PartitionRecord], suite: Suite) -> Measured:
        seconds = {record.partition: record.seconds or 0.0 for record in records}
        content = RecordedContent(records)
        return measure_and_judge(self._recorded(content), content, tuple(seconds), suite, seconds)

    def register(self, uri: str, name: str) -> None:
        register(measuring_session(self._spark), uri, name)

    def judge_together(self, records: Sequence[PartitionRecord], suite: Suite) -> Sequence[GateVerdict]:
        return judge_together(self._recorded(RecordedContent(records)), suite)

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        spark = measuring_session(self._spark)
        found = fingerprints(spark, records)
        for name in sorted({part.name for record in records for part in record.kept}):
            found |= _other_state(name, records, state_fingerprints(spark, records, name))
        return found

    def read_log(self, table: str) -> None:
        read_log(measuring_session(self._spark), table)

    def _recorded(self, content: RecordedContent) -> DataFrame:
        files = [file for record in content.records for file in record.files]
        return self._rows(content, files)

    def _rows(self, content: Content, files: Sequence[DataFile]) -> DataFrame:
        """The content's rows, for a gate: of many small files Spark keeps them once they were read, until the frame is
        gone.
        """
        rows = content.frame(measuring_session(self._spark))
        small = sum(file.bytes for file in files) <= self._most_kept
        return kept_by_spark(rows) if len(files) >= MANY_FILES and small else rows


def _other_state(name: str, records: Sequence[PartitionRecord], now: Mapping[int, str]) -> dict[int, str]:
    """What stands for the fingerprints of partitions whose state is not what was recorded."""
    kept = {record.partition: part.fingerprint for record in records for part in record.kept if part.name == name}
    return {partition: f"state {name}-changed-{found}" for partition, found in now.items() if found != kept[partition]}
