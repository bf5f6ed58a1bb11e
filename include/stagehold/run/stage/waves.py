"""The waves of one stage: write, measure, judge, publish, record, one after the other, and at most two under way.

While a wave is measured, judged, published and recorded in a thread of its own, the next one is computed. Waves are
published in order, and each has a staging folder of its own, so whoever dies loses two of them at most. Nothing is
computed ahead as long as waves still grow, since the size of the next one follows from what this one takes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import ReadChanged
from stagehold.lake.commit.staging import STATE_FOLDER, StagedWave, WaveFiles
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.store.columns import STATE_GROUP, STATE_POSITION
from stagehold.lake.store.file_sizing import FileSizer
from stagehold.model.partition_set import PartitionSet
from stagehold.model.pulse import Meter, Side
from stagehold.model.records import DataFile, StatePart
from stagehold.model.stage_state import StateShape
from stagehold.plan.resume.decisions import Decision
from stagehold.plan.state.earlier_state import Cut, Earlier
from stagehold.plan.waves.sizing import TimedWave, WaveCost, WaveSize, WaveSizer
from stagehold.run.checkpoints.checkpoint_answers import Answers
from stagehold.run.delivery.good_rows import SettingAside
from stagehold.run.delivery.wave import EquippedStage, Wave, WavePlace, in_wave
from stagehold.run.delivery.wave_publication import Delivery
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Frames
from stagehold.run.faults import Point, StatePoint
from stagehold.run.functions.function_errors import reporting_queries
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.functions.state_frames import state_schema
from stagehold.sources.declared_reads import changed_files
from stagehold.sources.source_files import SourceRoots
from stagehold.spark.session.result_settings import RESULT_SETTINGS
from stagehold.spec.settings.run_settings import DeterminismPolicy

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Counted = Mapping[int, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class WrittenWave:
    """A wave whose files are staged, of which nothing else is known yet. It took ``seconds``, ``computing`` of them
    before it was written.
    """

    files: WaveFiles
    decisions: tuple[Decision, ...]
    staged: StagedWave
    kept: Mapping[int, tuple[StatePart, ...]]
    counted: Counted
    seconds: float
    computing: float

    def timed(self, finishing: float) -> TimedWave:
        return len(self.decisions), self.seconds + finishing, self.staged.bytes


@dataclass(frozen=True)
class FinishedWave:
    """A wave that is on record: which of its partitions the gate refused, and the seconds that it took after it was
    written; ``stop`` is why no other wave may begin.
    """

    written: WrittenWave
    wave: Wave
    refused: Mapping[int, str]
    seconds: float
    stop: Exception | None


class Waves:
    """The waves of one stage in one attempt, which has had ``before`` of them. ``answers`` are given behind each wave,
    in the thread that recorded it, and asked before a wave beside another; both may stop the attempt. ``meter``
    measures what time goes for.
    """

    def __init__(
        self,
        equipped: EquippedStage,
        reading: Reading,
        frames: Frames,
        *,
        sizer: WaveSizer,
        before: int,
        answers: Answers,
        meter: Meter,
    ) -> None:
        self._task, self._workplace = equipped.task, equipped.workplace
        self._session, self._publisher = equipped.session, equipped.publisher
        self._reading, self._frames, self._sizer, self._before = reading, frames, sizer, before
        self._answers, self._meter = answers, meter
        may_differ = reading.pipeline.determinism_of(equipped.task.stage) is DeterminismPolicy.WARN
        self._delivery = Delivery(equipped, may_differ=may_differ)
        self._keeping = Keeping(equipped, reading.earlier.get(equipped.task.stage.name, Earlier()), frames)
        self._setting_aside = SettingAside(equipped)
        self._finishing: tuple[WrittenWave, Future[FinishedWave]] | None = None
        self._timed: list[TimedWave] = []
        self._last_seconds = 0.0  # of the last wave, for what came after it was written
        self._refused: dict[int, str] = {}

    def run(self, remaining: tuple[Decision, ...], schema: StructType) -> tuple[int, Mapping[int, str]]:
        """Compute these partitions; gives the number of waves, and the partitions that the gate refused."""
        files = FileSizer.guess(self._task.stage.output.file_bytes, schema).corrected_by(_recorded_files(remaining))
        (size, reason), number = self._sizer.first(len(remaining)), self._before
        try:
            while remaining:
                number += 1
                share = f"takes {size} of {len(remaining)} partitions: {reason}"
                self._workplace.progress(f"{self._task.stage.name}: wave {number} {share}")
                TIMINGS.passed(Lap.CHECK)
                current, remaining = remaining[:size], remaining[size:]
                written = self._write(self._files(number, current, files), current, schema)
                files = files.corrected_by([file for files in written.staged.files.values() for file in files])
                self._finish_beside(written, schema)
                size, reason = self._following(len(remaining))
            self._end_wave()
        except Exception:
            self._let_last_end()
            raise
        return number - self._before, self._refused

    def _let_last_end(self) -> None:
        """What was computed before an error is published all the same. An interrupt ends the attempt at once, as from
        any other place of its work: what was being finished is then as if the process had died in it. No commit begins
        behind the heartbeat's end; one that was under way may land, and the next attempt adopts it.
        """
        if self._finishing is not None:
            with suppress(Exception):
                self._finishing[1].result()

    def _finish_beside(self, written: WrittenWave, schema: StructType) -> None:
        """Begin to finish a wave once the one before has ended; also if the run is to stop there, since it is
        computed.
        """
        try:
            self._end_wave()
        finally:
            if self._finishing is None:
                self._finishing = written, self._workplace.beside(lambda: self._finish(written, schema))

    def _end_wave(self) -> None:
        """Wait until the wave that is being finished is on record.

        :raises Exception: what kept it from that; or what stops the attempt behind it.
        """
        if self._finishing is None:
            return
        ended = self._finishing[1].result()
        self._finishing, wave, timed = None, ended.wave, ended.written.timed(ended.seconds)
        self._meter.end_wave(len(wave.decisions), wave.rows, wave.staged.bytes, timed[1])
        self._refused |= ended.refused
        self._timed.append(timed)
        self._last_seconds = ended.seconds
        TIMINGS.wave_passed()
        if ended.stop is not None:
            raise ended.stop

    def _following(self, remaining: int) -> WaveSize:
        """The size of the next wave. It begins beside the one that was written just now if it is no larger, so that
        there is nothing to learn from that one's end.

        The first wave is waited for, since what judges it is imported meanwhile, which is no work for two threads; so
        is each of a stage whose gate sets rows aside, since these are written when it is judged.
        """
        if self._finishing and self._timed and remaining and not (self._task.suite and self._task.suite.setting_aside):
            written, seconds = self._finishing[0], self._last_seconds
            ahead = self._sizer.following(remaining, [*self._timed, written.timed(seconds)], seconds)
            if ahead[0] <= len(written.decisions):
                self._answers.refuse_suspended()
                return ahead
        self._end_wave()
        return self._sizer.following(remaining, self._timed, self._last_seconds)

    def _write(self, files: WaveFiles, decisions: tuple[Decision, ...], schema: StructType) -> WrittenWave:
        started, number, name = time.monotonic(), files.wave, self._task.stage.name
        self._meter.begin_wave(number)
        writing = self._meter.spent(Side.WRITING)
        with in_wave(WavePlace(name, number, files.partitions)):
            self._reach(Point.BEFORE_WRITE, number)
            faults, computing = self._workplace.faults, self._frames.computing(self._task.stage)
            reporting = reporting_queries(self._task.stage, files.partitions, Path(self._reading.project))
            with computing, reporting, faults.reach_within(Point.MID_WRITE, name, number, lambda: files.begun):
                with self._meter.in_query(dealt=not files.arranged):
                    frame = self._frames.output(self._task.stage, files.partitions)
                    staged = self._session.write(frame, files, self._unjudged(schema))
                with self._meter.at(Side.WRITING):
                    kept = self._keep(files)
                counted = self._frames.counted(self._task.stage, files.partitions)
            seconds, writing = time.monotonic() - started, self._meter.spent(Side.WRITING) - writing
            self._refuse_changed_files(files)
            written = WrittenWave(files, decisions, staged, kept, counted, seconds, seconds - writing)
            self._reach(Point.AFTER_WRITE, number)
        return written

    def _refuse_changed_files(self, files: WaveFiles) -> None:
        """:raises ReadChanged: a function that was called may have read something else than the wave's keys say"""
        pipeline, roots = self._reading.pipeline, SourceRoots.of(self._workplace.settings)
        for name in self._frames.reads:
            if changed := changed_files(pipeline.stage(name), pipeline, roots):
                raise ReadChanged(name, changed, f"{self._task.stage.name}[{PartitionSet(files.partitions)}]")

    def _finish(self, written: WrittenWave, schema: StructType) -> FinishedWave:
        """Measure, judge, publish and record a wave."""
        started, name, partitions = time.monotonic(), self._task.stage.name, written.files.partitions
        with in_wave(WavePlace(name, written.files.wave, partitions)):
            with self._meter.at(Side.JUDGING):
                wave = self._measured(written, schema, started)
            self._reach(Point.AFTER_MEASURE, wave.number)
            with self._meter.at(Side.PUBLISHING):
                right = self._publisher.right_to(name, written.decisions)
                refused = self._delivery.deliver(wave.of(right.partitions), right)
        seconds = time.monotonic() - started
        return FinishedWave(written, wave, refused, seconds, self._stop())

    def _stop(self) -> Exception | None:
        try:
            self._answers.at_boundary()
        except Exception as stop:  # noqa: BLE001 - it is raised once the wave is counted
            return stop
        return None

    def _measured(self, written: WrittenWave, schema: StructType, now: float) -> Wave:
        files, staged, seconds, suite = written.files, written.staged, written.seconds, self._task.suite
        measured = self._session.measure(staged, schema, files.partitions, suite, seconds)
        staged, measured, aside = self._setting_aside.good_rows(staged, measured, schema, files, seconds)
        kept = {number: (*written.kept.get(number, ()), *aside.get(number, ())) for number in files.partitions}
        return Wave(
            number=files.wave,
            decisions=written.decisions,
            staged=staged,
            metrics=measured.metrics,
            started=now - seconds,
            kept=kept,
            verdicts=measured.verdicts,
            counted=written.counted,
            computing=written.computing,
        )

    def _unjudged(self, schema: StructType) -> StructType | None:
        """The schema, if no gate reads the rows, and their files have no other values than Spark has: a pipeline's own
        settings can make them hold less, as timestamps of milliseconds, or make its session hash otherwise.
        """
        changed = self._reading.pipeline.spark_of(self._task.stage).keys() & RESULT_SETTINGS.keys()
        return None if self._task.suite or changed else schema

    def _keep(self, files: WaveFiles) -> Mapping[int, tuple[StatePart, ...]]:
        if not self._task.stage.states:
            return {}
        self._reach(StatePoint.BEFORE_STATE, files.wave)
        return self._keeping.keep(files)

    def _files(self, number: int, decisions: Sequence[Decision], sizer: FileSizer) -> WaveFiles:
        records = {decision.partition: decision.record for decision in decisions}
        recorded = {partition: record.bytes if record else None for partition, record in records.items()}
        return WaveFiles(
            location=self._task.location,
            attempt_id=self._task.attempt.attempt_id,
            wave=number,
            partitions=tuple(decision.partition for decision in decisions),
            sort_by=self._frames.group_columns(self._task.stage),
            arranged=self._frames.is_arranged(self._task.stage),
            rows_per_file=sizer.rows_per_file,
            starts=self._sizer.task_starts(recorded, WaveCost.of(self._timed) if self._timed else None),
        )

    def _reach(self, point: Point | StatePoint, wave: int) -> None:
        self._workplace.faults.reach(point, self._task.stage.name, wave)


def _recorded_files(decisions: Sequence[Decision]) -> list[DataFile]:
    return [file for decision in decisions if decision.record for file in decision.record.files]


class Keeping:
    """Stages what one stage keeps from interval to interval beside the rows of its waves, so that one commit tells of
    both; ``earlier`` is what it goes on with.
    """

    def __init__(self, equipped: EquippedStage, earlier: Earlier, frames: Frames) -> None:
        self.task, self.session, self.earlier, self.frames = equipped.task, equipped.session, earlier, frames

    def keep(self, files: WaveFiles) -> Mapping[int, tuple[StatePart, ...]]:
        """Write what the partitions of a wave keep, whose rows were written just now."""
        kept: dict[int, list[StatePart]] = defaultdict(list)
        for shape in self.task.stage.states:
            for partition, part in self._parts(shape, files).items():
                kept[partition].append(part)
        return {partition: tuple(parts) for partition, parts in kept.items()}

    def _parts(self, shape: StateShape, rows: WaveFiles) -> Mapping[int, StatePart]:
        order = STATE_POSITION if shape.kind.is_list else STATE_GROUP
        files = replace(rows, below=f"{STATE_FOLDER}/{shape.name}", sort_by=(order,), arranged=False)
        staged = self.session.write(self.frames.kept(self.task.stage, shape, rows.partitions), files)
        measured = self.session.measure(staged, state_schema(shape), rows.partitions, None, 0).metrics
        return {
            metrics.partition: self._part(shape, metrics, staged.files.get(metrics.partition, ()))
            for metrics in measured
        }

    def _part(self, shape: StateShape, measured: PartitionMetrics, files: tuple[DataFile, ...]) -> StatePart:
        stage, earlier = self.task.stage, self.earlier
        cut = Cut(stage.partitions, stage.max_parallelism)
        return StatePart(
            name=shape.name,
            files=files,
            rows=measured.rows,
            fingerprint=measured.fingerprint,
            partitions=cut.partitions,
            max_parallelism=cut.max_parallelism,
            began=earlier.beginning(shape, stage.states, measured.partition, cut),
            after=earlier.interval if earlier.records or earlier.gap else None,
            shape=shape.written,
        )
