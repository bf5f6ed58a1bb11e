"""Computes the partitions of one stage, wave by wave: write, measure, gate, publish, record.

After every wave its passing partitions are consumable, whatever happens next. A crash before the publish leaves files
nobody reads; a crash between publish and record leaves a commit that the next attempt adopts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.code.side_reads import side_reads
from stagehold.errors import GateBlocked, NotDeterministic, StageContractBroken
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.measure import has_columns
from stagehold.lake.read import recorded_schema
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.lake.tables import ensure_table
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import PartitionSet
from stagehold.model.pulse import Meter
from stagehold.plan.isolation.verdict import habits_text, separate_calls_text
from stagehold.plan.resume.decisions import Action, Decision, JudgeDecision
from stagehold.plan.split.regions import is_divisible
from stagehold.plan.waves.sizing import (
    TASK_SECONDS,
    TASK_SECONDS_IN_A_BUCKET,
    DeclaredInterval,
    WaveInterval,
    WaveSizer,
    adaptive_interval,
)
from stagehold.plan.waves.skew import skew_text, skewed
from stagehold.run.checkpoints.checkpoint_answers import Answers
from stagehold.run.delivery.good_rows import show_quarantined
from stagehold.run.delivery.rejudging import JudgingAgain, JudgingTogether
from stagehold.run.delivery.wave import EquippedStage
from stagehold.run.faults import Point, StatePoint
from stagehold.run.functions.determinism import inspect
from stagehold.run.functions.function_errors import reporting_queries
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.stage.waves import Waves
from stagehold.settings import Settings
from stagehold.sources.declared_reads import side_read_text, undeclared, undeclared_error
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.reads import Undeclared

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


RUNS_ASKED = 10  # newest runs among which one that timed the stage is looked for
ATTEMPTS_COUNTED = 500


class StageRunner:
    """Runs the waves of one stage within one attempt, of which it may have had some before. ``answers`` are given
    behind each wave, when that is recorded. ``meter`` measures what the time goes for.
    """

    def __init__(
        self,
        equipped: EquippedStage,
        reading: Reading,
        *,
        tables: RegionTables,
        waves_before: int,
        answers: Answers,
        meter: Meter,
    ) -> None:
        self._equipped, self._task, self._workplace = equipped, equipped.task, equipped.workplace
        self._reading, self._tables, self._answers = reading, tables, answers
        self._waves_before, self._meter = waves_before, meter
        equipped.session.report_stages(meter.observe)
        self._frames = equipped.session.frames(reading)

    def run(self, decisions: Sequence[Decision]) -> int:
        """Compute the decided partitions, or have them judged again; returns the number of waves.

        The table is created first, so that the fence has a log to go to before anything is written.

        :raises StageContractBroken: before anything is written, when the function's frame cannot be stored.
        :raises NotDeterministic: likewise, when it may come out different next time and the spec forbids that.
        :raises GateBlocked: after the last wave, when the gate refused some partitions; all others are consumable.
        """
        recorded = [decision for decision in decisions if isinstance(decision, JudgeDecision)]
        again = [decision for decision in recorded if not decision.together]
        computed = tuple(decision for decision in decisions if decision.action is not Action.JUDGE)
        self._meter.begin_stage(self._task.stage.name, len(computed))
        if computed:
            with self._reporting(computed[:1]), self._frames.computing(self._task.stage):
                schema = self._frames.check(self._task.stage, computed[0].partition)
                self._inspect_plans(computed[0].partition, schema)
                self._inspect_reads()
        else:
            schema = recorded_schema([decision.record for decision in recorded if decision.record])
        self._equipped.publisher.begin_stage(self._task.stage.name, partial(self._prepare, schema))
        self._tell_unjudged([decision.partition for decision in decisions])
        refused = self._judge_again(again)
        waves, of_waves = self._waves().run(computed, schema) if computed else (0, {})
        refused = {**refused, **of_waves} or self._judge_together(decisions, waves)
        self._forget_script()
        self._warn_of_skew(computed)
        show_quarantined(self._task, self._workplace)
        if refused:
            raise GateBlocked(self._task.stage.name, refused)
        return waves

    def _forget_script(self) -> None:
        """Delete what the stage's script wrote, which is staged by now."""
        if self._task.stage.is_script:
            files_at(self._reading.script_output(self._task.stage)).delete("")

    def _judge_again(self, decisions: Sequence[Decision]) -> Mapping[int, str]:
        """Judge recorded partitions again, which counts as a wave; gives those that the gate refuses."""
        if not decisions:
            return {}
        self._waves_before += 1
        return JudgingAgain(self._equipped).judge(decisions, self._waves_before)

    def _judge_together(self, done: Sequence[Decision], waves: int) -> Mapping[int, str]:
        """Judge all together; gives partitions that stay held since the gate refuses all of the stage; none while
        others are still to be computed.
        """
        planned, own = self._reading.decisions[self._task.stage.name], {decision.partition for decision in done}
        if self._task.whole is None or any(
            decision.action.computes and decision.partition not in own for decision in planned
        ):
            return {}
        refused = JudgingTogether(self._equipped).judge(self._task.whole, planned, self._waves_before + waves + 1)
        self._answers.at_boundary()
        return refused

    def _tell_unjudged(self, partitions: Sequence[int]) -> None:
        """What the gate lets for want of anything to compare it with."""
        suite = self._task.suite
        if suite is None:
            return
        for expectation, unjudged in suite.unjudged(sorted(partitions)).items():
            subject = f"{self._task.stage.name}[{PartitionSet(unjudged)}]"
            self._workplace.progress(f"{subject} is not judged by {expectation}: {suite.earlier.lacking}")

    def _inspect_plans(self, partition: int, schema: StructType) -> None:
        """Say, once per attempt, what may come out different next time, and why a wave is not computed by one call."""
        for counting in self._frames.counting:
            if not counting.output.stored:
                unrecorded = "its function counts, and no partition of it is recorded"
                raise StageContractBroken(counting.name, f"{unrecorded}: add `output: {{type: blocking}}`")
        found = inspect(self._frames, self._task.stage, self._reading, partition, schema)
        for finding, _ in found:
            self._warn("not deterministic", finding)
        for name, isolation in self._frames.isolations.items():
            if not isolation.together and not self._reading.pipeline.stage(name).states:  # which says so itself
                self._warn("called apart", separate_calls_text(name, isolation))
        for name, habits in self._frames.habits.items():
            if name not in self._frames.isolations and self._reading.pipeline.stage(name).partitions > 1:
                self._warn("called apart", habits_text(name, habits))
        refused = [finding for finding, is_refused in found if is_refused]
        if refused:
            raise NotDeterministic(self._task.stage.name, refused)

    def _inspect_reads(self) -> None:
        """Say, once per attempt, what functions read beside their inputs and do not declare.

        :raises UndeclaredRead: the stage's spec forbids that
        """
        roots, project, refused = SourceRoots.of(self._workplace.settings), Path(self._reading.project), {}
        for name, seen in self._frames.reads.items():
            stage = self._reading.pipeline.stage(name)
            declared = self._reading.pipeline.reads_of(stage)
            found = undeclared([*side_reads(stage.entries, project, stage.frames), *seen], declared, roots)
            if found and declared.undeclared is Undeclared.STRICT:
                refused[name] = found
                continue
            for read in found:
                self._warn("undeclared read", side_read_text(name, read), name)
        if refused:
            raise undeclared_error(self._reading.pipeline, refused)

    def _prepare(self, schema: StructType, epoch: int) -> None:
        claim = Claim(epoch, self._task.attempt.attempt_id)
        output, as_recorded = self._task.stage.output, self._is_recorded_with(schema)
        ensure_table(self._task.location, schema, claim, output, as_recorded=as_recorded)
        self._reach(Point.BEFORE_FENCE)
        self._equipped.committer.fence(self._task.location, claim, self._tables.rivals(self._task.stage.name))
        self._reach(Point.AFTER_FENCE)

    def _is_recorded_with(self, schema: StructType) -> bool:
        """Whether all that is on record of the stage and interval has just these columns."""
        records = [decision.record for decision in self._reading.decisions[self._task.stage.name] if decision.record]
        return bool(records) and all(has_columns(record, schema) for record in records)

    def _waves(self) -> Waves:
        place = self._workplace
        return Waves(
            self._equipped,
            self._reading,
            self._frames,
            sizer=wave_sizer(self._task.stage, self._reading.pipeline, place.ledger, place.settings),
            before=self._waves_before,
            answers=self._answers,
            meter=self._meter,
        )

    def _reporting(self, decisions: Sequence[Decision]) -> AbstractContextManager[None]:
        partitions = [decision.partition for decision in decisions]
        return reporting_queries(self._task.stage, partitions, Path(self._reading.project))

    def _warn_of_skew(self, decisions: Sequence[Decision]) -> None:
        """Name partitions, of those computed just now, that are much larger than the stage's others."""
        found = skewed(self._workplace.ledger.partitions.newest(self._task.cell))
        for partition in sorted(found.keys() & {decision.partition for decision in decisions}):
            self._warn("skewed", f"{self._task.stage.name}[{partition}] is skewed: {skew_text(found[partition])}")

    def _warn(self, kind: str, text: str, stage: str = "") -> None:
        self._workplace.warn(self._task.attempt.run_id, kind, stage or self._task.stage.name, text)

    def _reach(self, point: Point | StatePoint, wave: int = 0) -> None:
        self._workplace.faults.reach(point, self._task.stage.name, wave)


def wave_sizer(stage: Stage, pipeline: Pipeline, ledger: Ledger, settings: Settings) -> WaveSizer:
    """The sizer for a stage, with what earlier runs and earlier waves of this one tell."""
    runs = [run.run_id for run in ledger.runs.recent(RUNS_ASKED, pipeline.name)]
    return WaveSizer(
        interval=wave_interval(pipeline, ledger),
        slots=settings.spark_cores * 2,
        known=ledger.partitions.usual_cost(stage.id, runs),
        undivided=not is_divisible(stage, pipeline),
        task_seconds=TASK_SECONDS_IN_A_BUCKET if settings.lake_uri.startswith(OBJECT_STORE) else TASK_SECONDS,
    )


def wave_interval(pipeline: Pipeline, ledger: Ledger) -> WaveInterval:
    if isinstance(pipeline.wave, str):
        return adaptive_interval(ledger.attempts.recent(pipeline.name, ATTEMPTS_COUNTED))
    return DeclaredInterval(pipeline.wave.total_seconds())
