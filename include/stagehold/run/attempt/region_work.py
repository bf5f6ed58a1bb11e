"""What an attempt of a region does: settle its sources, plan, have healed what it reads, compute, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

from stagehold.errors import (
    EarlierMissing,
    GateBlocked,
    InputsNotReady,
    PartitionDataMissing,
    StageFailed,
    StageholdError,
    TableChanged,
)
from stagehold.ledger.leases import Heartbeat
from stagehold.model.records import Attempt, Event
from stagehold.model.states import AttemptEvent
from stagehold.plan.resume.decisions import Action, BlockedDecision, Decision, ResumePlan
from stagehold.plan.resume.healing import healings, lost_data, missing_inputs
from stagehold.plan.resume.plan_summary import explain
from stagehold.plan.resume.released_outputs import released_outputs, released_text
from stagehold.plan.split.regions import stage_regions
from stagehold.run.attempt.restored_data import WAVE, RestoredData
from stagehold.run.attempt.retraction import Retraction
from stagehold.run.attempt.stage_tasks import StageTasks
from stagehold.run.attempt.stale_intervals import tell_later_intervals
from stagehold.run.checkpoints.checkpoint_answers import Answers
from stagehold.run.delivery.content_check import verify_reused
from stagehold.run.delivery.good_rows import show_quarantined
from stagehold.run.delivery.wave import EquippedStage, Publisher
from stagehold.run.equipment.workplace import Session, Workplace
from stagehold.run.faults import Point
from stagehold.run.journal import journal
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.planning import IntervalView, RunRequest, begins_with_of
from stagehold.run.planning.refusal import refuse_too_early
from stagehold.run.planning.restoring import HEALED, what_was_released
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stage.runner import StageRunner
from stagehold.sources.attempt_sources import Listing, Sources, is_incremental
from stagehold.sources.declared_reads import look_at_reads_anew
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.run_settings import VerifyPolicy

Heal = Callable[[RegionTask], None]


class RegionWork:
    """The work of one attempt. ``died`` are attempts before it that may have left a session behind.

    ``answers`` are its part in checkpoints of the run. ``heal`` runs an attempt of another region, or waits a moment if
    somebody else runs one.
    """

    def __init__(
        self,
        task: RegionTask,
        attempt: Attempt,
        died: tuple[Attempt, ...],
        heartbeat: Heartbeat,
        publisher: Publisher,
        workplace: Workplace,
        heal: Heal,
    ) -> None:
        self.task, self.attempt, self.died, self.heal = task, attempt, died, heal
        self.heartbeat, self.publisher, self.workplace = heartbeat, publisher, workplace
        self.answers = Answers(attempt, task.pipeline.checkpoint, workplace)
        self.tables = RegionTables(task, workplace)

    @cached_property
    def _tasks(self) -> StageTasks:
        return StageTasks(self.task, self.attempt, self.tables, self._sources)

    @cached_property
    def _sources(self) -> Sources:
        task, place = self.task, self.workplace
        return IntervalView(task.request, place.ledger, place.settings, secret_places=task.secret_places).sources

    @property
    def _retraction(self) -> Retraction:
        return Retraction(self.tables, self.attempt, self.heartbeat, self._planned)

    def do(self) -> RegionOutcome:
        """Bring every partition of the region, or of the task's share of it, to consumable: run the stages that need
        it, one after the other. A later one may read an earlier one's new records, so it is planned anew.

        :raises GateBlocked: what was computed did not pass, or had not before; all others are consumable.
        """
        started, waves = time.monotonic(), 0
        self.publisher.report(AttemptEvent.REPORTED_INITIALIZING)
        plan = self._ready_plan()
        working = [name for name in self.tables.stages if self._to_do(name, plan)]
        if working or self._verifies_all or self.tables.unregistered():
            with self._session(working, plan) as session:
                for place, name in enumerate(working):
                    if place:
                        self._decide_counts()
                    now = self.plan(working[:place]) if place else plan
                    if decisions := self._to_do(name, now):
                        waves += self._runner(name, now, session).run(decisions)
                        self.tables.sweep(name, self.attempt)
                for uri, entry in self.tables.unregistered():
                    session.register(uri, entry)
        self._conclude(working, plan)
        return self._outcome(plan, waves, time.monotonic() - started)

    def _ready_plan(self) -> ResumePlan:
        """The plan, when all that it reads is there and nothing is published that may be read no more."""
        self._refuse_too_early()
        self._settle_sources()
        self._retraction.carry_out()
        plan = self._put_restored(self._plan_with_inputs())
        for line in explain(plan, self.task.region.stages):
            self.workplace.progress(str(line))
        if self._computes(plan):
            self.task.find_secrets(self.workplace.settings)  # before anything is computed
            self._tell_form()
        return plan

    @contextmanager
    def _session(self, working: Sequence[str], plan: ResumePlan) -> Iterator[Session]:
        """What is about to be read is compared first, as far as `verify` says.

        :raises PartitionDataMissing: when the block failed and recorded data that is needed disappeared meanwhile.
        """
        try:
            with self.workplace.engine.open(self.task, self.attempt, self.died) as session:
                self._verify([name for name in working if self._to_compute(name, plan)], plan, session)
                self.publisher.report(AttemptEvent.REPORTED_RUNNING)
                yield session
        except GateBlocked:
            self._retraction.carry_out()  # of what is refused by another gate than the one that somebody overruled
            self._retraction.mark()
            raise
        except Exception as error:
            known = isinstance(error, StageholdError) and not isinstance(error, StageFailed)
            lost = () if known else lost_data(self.plan())
            if not lost:
                raise
            partitions = [each.partition for each in lost if each.stage == lost[0].stage]
            raise PartitionDataMissing(lost[0].stage, partitions) from error

    def _conclude(self, working: Sequence[str], plan: ResumePlan) -> None:
        """Conclude the work behind the last wave: what people and later intervals are told, and what keeps the attempt
        from finishing.
        """
        self._show_quarantined([name for name in self.tables.stages if name not in working])
        tell_later_intervals(self.task, self.tables.stages, self.workplace)
        self._retraction.mark()
        self.refuse_blocked(self.plan() if working and self._changes_others else plan)
        self.workplace.faults.reach(Point.BEFORE_FINISH, self.task.region.name)

    def _put_restored(self, plan: ResumePlan) -> ResumePlan:
        """The plan, after what the run begins with is where its interval has its data."""
        begins_with = begins_with_of(self._request)
        if begins_with is None:
            return plan
        restored = RestoredData(begins_with, self.tables, self.attempt, self.heartbeat)
        pipeline = self._view.pipeline
        put = 0
        for name in self.tables.stages:
            taken = [decision for decision in plan.of(name) if self.task.takes(name, decision.partition)]
            stage = pipeline.stage(name)
            put += restored.put(stage, taken, self._tasks.positions(stage, pipeline))
        if not put:
            return plan
        self._retraction.carry_out()  # of what was let by a word that has ended since the checkpoint was made
        return self.plan()

    def _show_quarantined(self, names: Sequence[str]) -> None:
        """The quarantine of stages of which nothing is computed: an attempt before this one may have died before it did
        so.
        """
        pipeline = self._view.pipeline
        for name in names:
            show_quarantined(self._tasks.stage_task(pipeline.stage(name), pipeline), self.workplace)

    def _tell_form(self) -> None:
        """Tell which outputs are stored that were to be computed along, and why."""
        outputs = {name: self.task.pipeline.stage(name).output for name in self.task.region.stages}
        for name, worth in ((name, output.worth) for name, output in outputs.items() if output.worth):
            self.workplace.progress(f"{'stores' if worth.stored else 'computes along'} {name}: {worth}")
        stored = {name: output.fallback for name, output in outputs.items() if output.fallback}
        for first in set(stored.values()):
            why = f"epoch {first.epoch}, which computed all of {self.task.region.name} at once, failed ({first.rule})"
            text = f"stores {' and '.join(stored)} before what reads them runs, since {why}"
            self.workplace.progress(f"{self.task.subject} {text}")
            journal.tell(self.task, self.workplace.ledger, "fallback", text)

    def _outcome(self, plan: ResumePlan, waves: int, seconds: float) -> RegionOutcome:
        stored, takes = self.tables.stages, self.task.takes
        reused = sum(
            takes(name, decision.partition)
            for name in stored
            for decision in plan.of(name)
            if decision.reused or decision.action is Action.JUDGE
        )
        counts = {name: len(self._to_compute(name, plan)) for name in self.task.region.stages}
        computed = sum(counts[name] for name in stored)
        return RegionOutcome(reused, computed, waves, seconds, along=sum(counts.values()) - computed)

    def plan(self, done: Sequence[str] = ()) -> ResumePlan:
        """What is to be done now, by what ledger and lake say now.

        :param done: stages that this attempt has computed, which count as they are: also if nobody can compare their
            code.
        """
        return self._planned(done).within(self.task.region.stages, self.task.share)

    def _planned(self, done: Sequence[str] = ()) -> ResumePlan:
        """The plan of all shares of the region, by the files that its stages read now: one before may write them."""
        look_at_reads_anew()
        stages = tuple(name for name in self.task.region.stages if name not in done)
        return self._view.plan_region(stages, self.task.only)

    @property
    def _view(self) -> IntervalView:
        """The interval as it is now."""
        return IntervalView(self._request, self.workplace.ledger, self.workplace.settings, self._sources)

    @property
    def _request(self) -> RunRequest:
        return replace(self.task.request, as_of=self.attempt.started_at)

    def finished_plan(self) -> ResumePlan | None:
        """The plan, if it leaves this attempt nothing to compute."""
        plan = self.plan()
        return None if any(self._to_do(name, plan) for name in self.tables.stages) else plan

    def _computes(self, plan: ResumePlan) -> bool:
        return any(self._to_compute(name, plan) for name in self.tables.stages)

    def refuse_blocked(self, plan: ResumePlan) -> None:
        """:raises GateBlocked: or EarlierMissing or TableChanged, whatever keeps partitions of the task from being
        consumable.
        """
        for name in self.task.region.stages:
            decisions = (decision for decision in plan.of(name) if self.task.takes(name, decision.partition))
            blocked = [decision for decision in decisions if isinstance(decision, BlockedDecision)]
            for decision in blocked:
                if decision.gap:
                    raise EarlierMissing(self.task.pipeline.name, name, decision.gap.interval, str(decision.reason))
            by_gate = {decision.partition: str(decision.reason) for decision in blocked if decision.foreign is None}
            if by_gate:
                raise GateBlocked(name, by_gate)
            if blocked:
                raise TableChanged(name, {decision.partition: str(decision.reason) for decision in blocked})

    @property
    def _changes_others(self) -> bool:
        """Whether partitions that this attempt does not compute may be blocked by its end:
        by a stage before them, or by a helper.
        """
        return len(self.tables.stages) > 1 or self.task.pipeline.speculation is not None

    def _refuse_too_early(self) -> None:
        """Refuse an interval that comes too early, before anything is taken of a source, or computed, that a later
        region of the run could do nothing with.

        :raises EarlierMissing: a stage of any region goes on with what an interval keeps that has to run first.
        """
        request, place = self._request, self.workplace
        if self.task.waits or self.task.only is not None:
            return
        view = IntervalView(request, place.ledger, place.settings)
        if any(earlier.gap for earlier in self._tasks.earlier(view.pipeline).values()):
            refuse_too_early(request.pipeline, view.plan_region(self.task.region.stages))

    def _settle_sources(self) -> None:
        """Settle what the region's sources give, before anything is planned: all partitions are cut from the same."""
        listing = Listing.OF_RUN if self.task.only is None else Listing.OF_INTERVAL
        seen = self._sources.look(self.task.pipeline.stages) if self.task.only is None else {}
        for name, files_or_version in seen.items():
            self.workplace.progress(f"{name}: {self.task.request.interval} reads {files_or_version}")
        for stage in map(self.task.pipeline.stage, self.task.region.stages):
            self._tell_taken_back(stage, self._sources.take_back(stage) if is_incremental(stage) else ())
            if self.task.only is None and (old := self._sources.aged(stage)):
                self.workplace.warn(self.task.request.run_id, "sources", stage.name, f"{stage.name}: {old}")
            position = self._sources.settle(stage, listing) if stage.source else None
            if position is not None:
                self.workplace.progress(f"{stage.name}: {self.task.request.interval} reads {position}")
                for line in self._sources.left_to_others(stage):
                    self.workplace.progress(line)
            if self.task.only is None and stage.name not in seen:
                self._tell_since(stage)

    def _tell_since(self, stage: Stage) -> None:
        """What the run does not see of a plain source any more, or not yet."""
        plain = stage.source is not None and stage.source.dealt and not stage.source.incremental
        if plain and (told := self._sources.since(stage)):
            text = f"{stage.name}: since the run has seen its sources, {told}; a new run sees what is there now"
            self.workplace.warn(self.task.request.run_id, "sources", stage.name, text)

    def _tell_taken_back(self, stage: Stage, intervals: Sequence[str]) -> None:
        if intervals and self.workplace.settings.sandbox:
            self.workplace.progress(f"{stage.name}: learnt what {len(intervals)} intervals of production have read")
            return
        for interval in intervals:
            self.workplace.progress(
                f"{stage.name}: the ledger did not know what {interval} has read; took that from the table's log"
            )

    def _decide_counts(self) -> None:
        """Numbers of partitions that follow from inputs which are consumable by now."""
        task, place = self.task, self.workplace
        for count in self._view.decide_counts(task.region.stages):
            text = f"{count.partitions} partitions for {count.bytes} bytes of input, from now on for this interval"
            place.progress(f"{count.cell.stage}: {text}")

    def _plan_with_inputs(self) -> ResumePlan:
        """The plan once everything that the region reads can be read;
        heals what other regions made and what is lost.
        """
        regions, told = stage_regions(self.task.pipeline), False
        while True:
            self._decide_counts()
            plan = self.plan()
            if not told:
                self._tell_released(plan)
            told = True
            lost = healings(plan, regions, self.task.region) if self._computes(plan) else ()
            if not lost:
                break
            self.heartbeat.check()
            region, partitions = lost[0]
            text = f"{_named(partitions)}, which {self.task.region.name} reads and whose data is gone"
            self.workplace.progress(f"healing {text}")
            self.heal(replace(self.task, region=region, share=None, only=partitions))
        missing = missing_inputs(plan, self.task.pipeline, self.task.region, self.task.share)
        if missing:
            raise InputsNotReady(self.task.region.name, missing)
        return plan

    def _tell_released(self, plan: ResumePlan) -> None:
        """Tell which released outputs are needed, before any of them is computed again. An attempt that was asked to
        heal leaves that to the attempt that asked.
        """
        if self.task.only is not None or not self._computes(plan):
            return
        if text := what_was_released(self.task.request, plan):
            self.workplace.progress(text)
        now, interval = datetime.now(UTC), self.task.request.interval
        for output in released_outputs(plan):
            told = f"{released_text({interval: [output]})}, computed again"
            self.workplace.ledger.events.append(Event(self.task.request.run_id, HEALED, output.stage, told, now))

    def _to_compute(self, stage: str, plan: ResumePlan) -> list[Decision]:
        decided = (decision for decision in plan.of(stage) if decision.action.computes)
        return [decision for decision in decided if self.task.takes(stage, decision.partition)]

    def _to_do(self, stage: str, plan: ResumePlan) -> list[Decision]:
        """What is computed, and what is judged again."""
        judged = (decision for decision in plan.of(stage) if decision.action is Action.JUDGE)
        return [
            *(decision for decision in judged if self.task.takes(stage, decision.partition)),
            *self._to_compute(stage, plan),
        ]

    @property
    def _verifies_all(self) -> bool:
        return self.task.pipeline.verify is VerifyPolicy.ALWAYS

    def _verify(self, computing: Sequence[str], plan: ResumePlan, session: Session) -> None:
        """What is about to be read, of other stages and of the interval before; if all is to be compared, what this
        region reuses as well.
        """
        pipeline = self.task.pipeline
        edges = (edge.stage for name in self.task.region.stages for edge in pipeline.stage(name).inputs)
        read = [name for name in dict.fromkeys(edges) if computing and pipeline.stage(name).output.stored]
        stages = dict.fromkeys((*read, *(self.tables.stages if self._verifies_all else ())))
        earlier = self._tasks.earlier(self._view.pipeline) if computing else {}
        reused = [
            *((name, plan.records(name)) for name in stages),
            *((f"{name} of {found.interval}", found.records) for name, found in earlier.items() if name in computing),
        ]
        verify_reused(reused, self.task, self.heartbeat.lease, session, self.workplace)

    def _runner(self, name: str, plan: ResumePlan, session: Session) -> StageRunner:
        pipeline, begun = self._view.pipeline, begins_with_of(self.task.request)
        task = self._tasks.stage_task(pipeline.stage(name), pipeline)
        committer = session.committer(task.stage, task.location)
        return StageRunner(
            EquippedStage(task, session, self.publisher, committer, self.workplace),
            self._tasks.reading(pipeline, plan),
            tables=self.tables,
            waves_before=max(WAVE if begun else 0, self.tables.waves_of(name, self.attempt.attempt_id)),
            answers=self.answers,
            meter=self.heartbeat.meter,
        )


def _named(partitions: Mapping[str, frozenset[int]]) -> str:
    return ", ".join(f"{stage}[{partition}]" for stage, numbers in partitions.items() for partition in sorted(numbers))
