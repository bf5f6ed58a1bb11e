"""What one attempt of a region does while it holds the lease: fence, adopt, plan, compute."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import GateBlocked, InputsNotReady, PartitionDataMissing, StageFailed, StageholdError, TableChanged
from stagehold.gates.judge import preload
from stagehold.gates.suite import load_suite
from stagehold.lake.commit import RECENT
from stagehold.lake.committer import committer_for
from stagehold.lake.location import TableLocation, table_location
from stagehold.lake.staged_committer import StagedCommitter
from stagehold.lake.wave_commit import Claim
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.context import StageContext
from stagehold.model.records import Attempt, AttemptState, Cell, Lease
from stagehold.model.spec import Stage, VerifyPolicy
from stagehold.plan.explanation import explain
from stagehold.plan.fusion import sources_within
from stagehold.plan.healing import healings, lost_data, missing_inputs
from stagehold.plan.regions import stage_regions
from stagehold.plan.resume import Action, Decision, ResumePlan
from stagehold.run import book
from stagehold.run.adoption import adopt
from stagehold.run.attempt_session import session_of
from stagehold.run.faults import Point, reach
from stagehold.run.frames import FrameBuilder
from stagehold.run.intermediates import Intermediates
from stagehold.run.log_epochs import newest_epoch_in_logs
from stagehold.run.overtaken import wait_for_faster
from stagehold.run.pace import wave_sizer
from stagehold.run.planning import counted, decide_counts, plan_region, sources_of
from stagehold.run.project_modules import send_project
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.restoring import check_restore, fulfil_restore
from stagehold.run.rights import Right
from stagehold.run.sources import Listing, Sources, is_incremental
from stagehold.run.sweeping import sweep_behind
from stagehold.run.verdict import attach
from stagehold.run.verification import verify_reused
from stagehold.run.waves import StageRunner
from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RegionAttempt:
    """One attempt; ``previous`` are those before it on the same partitions and interval, of this run or others.

    ``heal`` runs an attempt of another region, or waits a moment if somebody else runs one.
    """

    task: RegionTask
    attempt: Attempt
    previous: tuple[Attempt, ...]
    ledger: Ledger
    heartbeat: Heartbeat
    settings: Settings
    progress: Progress
    heal: Callable[[RegionTask], None]

    @staticmethod
    def begin(
        task: RegionTask, ledger: Ledger, heartbeat: Heartbeat, settings: Settings, progress: Progress, heal: Callable[[RegionTask], None]
    ) -> RegionAttempt:
        previous = ledger.attempts.newest(task.pipeline.name, task.interval, task.region.name, task.share)
        attempt = book.start_attempt(task, heartbeat.lease.epoch, ledger)
        return RegionAttempt(task, attempt, previous, ledger, heartbeat, settings, progress, heal)

    def run(self) -> RegionOutcome:
        """Do the work and book how it ended."""
        try:
            outcome = self._work_unless_overtaken()
        except KeyboardInterrupt:
            book.cancel(self.task, self.attempt, self.ledger)
            raise
        except BaseException as error:
            verdict = book.fail(self.task, self.attempt, self.ledger, self.settings, error)
            self.progress(f"{self.task.region.name}: {verdict}")
            attach(error, verdict)
            raise
        book.succeed(self.task, self.attempt, self.ledger, self.settings, str(outcome))
        if restore := fulfil_restore(self.task.request, self.ledger):
            book.tell(self.task, self.ledger, "restored", f"{restore.stage} and all that reads it is computed anew, as was asked for")
        return outcome

    def _work_unless_overtaken(self) -> RegionOutcome:
        """An attempt that lost its share to a faster one waits for that one, and ends as well as it does."""
        started = time.monotonic()
        try:
            return self._work()
        except Exception as error:
            if self.task.pipeline.speculation is None or self.ledger.leases.holds(self.heartbeat.lease):
                raise
            self.progress(f"{self.task.subject} was overtaken by a faster attempt ({type(error).__name__}); waiting for that one")
            plan = wait_for_faster(self.heartbeat.lease, self.ledger, self._plan, self._computes)
        self._refuse_blocked(plan)
        book.tell(self.task, self.ledger, "superseded", "a faster attempt made every partition consumable")
        return RegionOutcome(sum(len(plan.of(name)) for name in self._stored_stages), 0, 0, time.monotonic() - started)

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:  # noqa: ARG002
        prepare(self.attempt.epoch)

    def secure(self, stage: str, decisions: Sequence[Decision]) -> Right:  # noqa: ARG002
        """The lease gives the right from the start."""
        return Right(self.attempt, self.heartbeat, frozenset(decision.partition for decision in decisions))

    def _work(self) -> RegionOutcome:
        started = time.monotonic()
        self._reach(Point.AFTER_LEASE)
        check_restore(self.task.request, self.ledger)
        behind = self._ledger_is_behind
        if behind:
            self.progress(f"the ledger misses attempts of {self.task.subject}: taking over what its tables' logs say they committed")
        if self._died or behind:
            self._fence(self.attempt.epoch)
            self._adopt(self.heartbeat.lease, None if behind else RECENT)
        self._settle_sources()
        plan = self._plan_with_inputs()
        for line in explain(plan, self.task.region.stages):
            self.progress(str(line))
        computing = [name for name in self._stored_stages if self._to_compute(name, plan)]
        waves = self._compute(computing, plan) if computing or self._verifies_all else 0
        self._refuse_blocked(self._plan() if computing and self._changes_others else plan)
        computed = sum(len(self._to_compute(name, plan)) for name in computing)
        self._reach(Point.BEFORE_FINISH)
        wanted = sum(self.task.takes(name, decision.partition) for name in self._stored_stages for decision in plan.of(name))
        along = sum(len(self._to_compute(name, plan)) for name in self.task.region.stages if name not in self._stored_stages)
        return RegionOutcome(wanted - computed, computed, waves, time.monotonic() - started, along)

    def _reach(self, point: Point) -> None:
        reach(self.settings.home_path, point, self.task.region.name, 0)

    @property
    def _died(self) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.previous if attempt.state is not AttemptState.FINISHED)

    @property
    def _ledger_is_behind(self) -> bool:
        """Whether attempts may have committed or fenced here of which the ledger knows nothing, as after it was lost or put back.

        Epochs of the region that follow one another without a gap, since an attempt last finished on these partitions, say that there
        are none; the logs are asked only if there is one. A gap without such attempts, as a sweep leaves it, costs reading a log.
        """
        finished = max((attempt.epoch for attempt in self.previous if attempt.state is AttemptState.FINISHED), default=0)
        missing = set(range(finished + 1, self.attempt.epoch)) - self.ledger.attempts.epochs(self.attempt)
        return bool(missing) and newest_epoch_in_logs(self.task, self.settings, self.task.share) > 0

    @property
    def _stored_stages(self) -> tuple[str, ...]:
        return tuple(name for name in self.task.region.stages if self.task.pipeline.stage(name).output.type.stored)

    @property
    def _changes_others(self) -> bool:
        """Whether partitions that this attempt does not compute may be blocked by its end: by a stage before them, or by a helper."""
        return len(self._stored_stages) > 1 or self.task.pipeline.speculation is not None

    def _settle_sources(self) -> None:
        """What the region's sources give is settled before anything is planned, so that all its partitions are cut from the same."""
        listing = Listing.OF_INTERVAL if self.task.only is not None else Listing.OF_RUN if self.task.share else Listing.ANEW
        for stage in map(self.task.pipeline.stage, self.task.region.stages):
            for interval in self._sources.take_back(stage) if is_incremental(stage) else ():
                self.progress(f"{stage.name}: the ledger did not know what {interval} has read; took that from the table's log")
            position = self._sources.settle(stage, listing) if stage.source else None
            if position is not None:
                self.progress(f"{stage.name}: {self.task.interval} reads {position}")

    @cached_property
    def _sources(self) -> Sources:
        return sources_of(self.task.request, self.ledger, self.settings)

    @cached_property
    def _intermediates(self) -> Intermediates:
        return Intermediates()

    def _plan(self) -> ResumePlan:
        stages = self.task.region.stages
        for count in decide_counts(self.task.request, stages, self.ledger, self.settings, self._sources):
            self.progress(
                f"{count.cell.stage}: {count.partitions} partitions for {count.bytes} bytes of input, from now on for this interval"
            )
        return plan_region(self.task.request, stages, self.ledger, self.settings, self._sources, self.task.only).within(
            stages, self.task.share
        )

    def _fence(self, epoch: int) -> None:
        """Before anything is looked at, and whether or not anything is to be computed: what is adopted and planned stays as it is."""
        for name in self._stored_stages:
            StagedCommitter().fence(self._location(name), Claim(epoch, self.attempt.attempt_id), self._rivals(name))

    def _adopt(self, lease: Lease, limit: int | None = RECENT) -> None:
        for name in self._stored_stages:
            adopted = adopt(self._cell(name), self._location(name), self.task.share, self.ledger, lease, limit)
            if adopted:
                self.progress(f"{name}: adopted {len(adopted)} partitions that an earlier attempt committed but could not record")

    def _plan_with_inputs(self) -> ResumePlan:
        """The plan once everything that the region reads can be read; heals what other regions made and what is lost."""
        regions = stage_regions(self.task.pipeline)
        while True:
            plan = self._plan()
            lost = healings(plan, regions, self.task.region) if self._computes(plan) else ()
            if not lost:
                break
            self.heartbeat.check()
            first = lost[0]
            self.progress(f"healing {_named(first.partitions)}, which {self.task.region.name} reads and whose data is gone")
            self.heal(replace(self.task, region=first.region, share=None, only=first.partitions))
        missing = missing_inputs(plan, self.task.pipeline, self.task.region, self.task.share)
        if missing:
            raise InputsNotReady(self.task.region.name, missing)
        return plan

    def _computes(self, plan: ResumePlan) -> bool:
        return any(self._to_compute(name, plan) for name in self._stored_stages)

    def _to_compute(self, stage: str, plan: ResumePlan) -> list[Decision]:
        return [decision for decision in plan.of(stage) if decision.action.computes and self.task.takes(stage, decision.partition)]

    def _refuse_blocked(self, plan: ResumePlan) -> None:
        for name in self.task.region.stages:
            decisions = (decision for decision in plan.of(name) if self.task.takes(name, decision.partition))
            blocked = [decision for decision in decisions if decision.action is Action.BLOCKED]
            by_gate = {decision.partition: str(decision.reason) for decision in blocked if decision.foreign is None}
            if by_gate:
                raise GateBlocked(name, by_gate)
            if blocked:
                raise TableChanged(name, {decision.partition: str(decision.reason) for decision in blocked})

    def _compute(self, names: list[str], plan: ResumePlan) -> int:
        """Run the stages that need it, one after the other; a later one may read an earlier one's new records, so it is planned anew.

        :raises PartitionDataMissing: when it failed and recorded data that is needed disappeared meanwhile.
        """
        if any(self.task.pipeline.stage(name).gate for name in names):
            preload()
        try:
            with session_of(self.attempt, self._died, self.settings, self.progress, self.task.pipeline.stall_timeout) as spark:
                send_project(spark, (self.task.pipeline.stage(name).job for name in self.task.region.stages), Path(self.settings.project))
                self._verify(names, plan, spark)
                return sum(self._run_stage(name, self._plan() if place else plan, spark) for place, name in enumerate(names))
        except Exception as error:
            known = isinstance(error, StageholdError) and not isinstance(error, StageFailed)
            lost = () if known else lost_data(self._plan())
            if not lost:
                raise
            raise PartitionDataMissing(lost[0].stage, [each.partition for each in lost if each.stage == lost[0].stage]) from error

    @property
    def _verifies_all(self) -> bool:
        return self.task.pipeline.verify is VerifyPolicy.ALWAYS

    def _verify(self, computing: list[str], plan: ResumePlan, spark: SparkSession) -> None:
        """What is about to be read; if all is to be compared, what this region reuses as well."""
        edges = (edge.stage for name in self.task.region.stages for edge in self.task.pipeline.stage(name).inputs)
        read = [stage for stage in dict.fromkeys(edges) if computing and self.task.pipeline.stage(stage).output.type.stored]
        stages = dict.fromkeys((*read, *(self._stored_stages if self._verifies_all else ())))
        verify_reused(list(stages), plan, self.task, self.ledger, self.heartbeat.lease, spark, self.progress)

    def _run_stage(self, name: str, plan: ResumePlan, spark: SparkSession) -> int:
        decisions = self._to_compute(name, plan)
        if not decisions:
            return 0
        waves = self._runner(name, plan, spark).run(decisions)
        swept = sweep_behind(self.attempt, self._cell(name), self._location(name), self.ledger, self.settings)
        if swept:
            self.progress(f"{name}: deleted {sum(one.files for one in swept)} files that dead attempts left")
        return waves

    def _runner(self, name: str, plan: ResumePlan, spark: SparkSession) -> StageRunner:
        pipeline = counted(self.task.request, self.ledger).pipeline
        stage = pipeline.stage(name)
        location = self._location(name)
        frames = FrameBuilder(
            spark=spark,
            pipeline=pipeline,
            decisions=plan.by_stage,
            sources=self._sources,
            context=self._context,
            project=self.settings.project,
            intermediates=self._intermediates,
        )
        return StageRunner(
            stage=stage,
            cell=self._cell(stage.name),
            run_id=self.attempt.run_id,
            attempt_id=self.attempt.attempt_id,
            location=location,
            rivals=partial(self._rivals, stage.name),
            committer=committer_for(stage.output.committer, spark, location, only_writer=self.settings.only_spark_writer),
            rights=self,
            positions=tuple(self._sources.taken_of(source) for source in sources_within(stage, pipeline) if is_incremental(source)),
            frames=frames,
            suite=load_suite(Path(self.settings.suites) / f"{stage.gate}.yaml") if stage.gate else None,
            ledger=self.ledger,
            sizer=wave_sizer(stage, pipeline, self.ledger, self.settings),
            home=self.settings.home_path,
            progress=self.progress,
        )

    def _context(self, stage: Stage, partitions: tuple[int, ...]) -> StageContext:
        task = self.task
        return StageContext(
            pipeline=task.pipeline.name,
            stage=stage.name,
            interval=task.interval,
            logical_date=task.logical_date,
            partitions=partitions,
            seed=zlib.crc32(f"{task.pipeline.name}/{stage.id}/{task.interval}".encode()),
            params={**task.pipeline.params, **task.params, **stage.params},
        )

    def _cell(self, stage: str) -> Cell:
        return Cell(self.task.pipeline.name, self.task.pipeline.stage(stage).id, self.task.interval)

    def _rivals(self, stage: str) -> list[TableLocation]:
        """The same table as attempts of other shares know it, as far as those overlap this one."""
        return [self._location(stage).of(share) for share in self.ledger.leases.overlapping(self.task.lease_name, self.task.share)]

    def _location(self, stage: str) -> TableLocation:
        stage_ = self.task.pipeline.stage(stage)
        return table_location(self.settings.lake_uri, self.task.pipeline.name, stage_, self.task.interval, self.task.share)


def _named(partitions: Mapping[str, frozenset[int]]) -> str:
    return ", ".join(f"{stage}[{partition}]" for stage, some in partitions.items() for partition in sorted(some))
