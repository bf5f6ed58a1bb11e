"""Takes data out of all tables of a pipeline that may no longer be shown, from within an attempt of one of its
regions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from stagehold.errors import LeaseHeld
from stagehold.lake.commit.table_marks import mark_outstaying
from stagehold.lake.commit.wave_commit import Claim, WaveCommit
from stagehold.lake.store.location import table_location
from stagehold.ledger.leases import Heartbeat
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Attempt, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import grouped
from stagehold.plan.resume.decisions import Decision, ResumePlan
from stagehold.plan.resume.waiving import as_blocked, as_retracted
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.run.delivery.publish import Publication, publish, under
from stagehold.run.lease.leasing import LeaseWait, kept_alive, take_lease
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.acceptance import all_waivers
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.output_settings import OnWaiverEnd


class Retraction:
    """Retraction by one attempt, which holds the lease of its own task; ``plan`` makes a plan of all partitions, by the
    ledger and the lake as they are now.

    A gate that refuses something ends its run before the regions after it begin. So the attempt that finds out takes
    the rows out of the tables of those regions as well, under their leases. If somebody works on one of them, it waits
    until they finish.
    """

    def __init__(
        self, tables: RegionTables, attempt: Attempt, heartbeat: Heartbeat, plan: Callable[[], ResumePlan]
    ) -> None:
        self.tables, self.attempt, self.heartbeat, self.plan = tables, attempt, heartbeat, plan
        self.waits: dict[str, LeaseWait] = {}

    def carry_out(self) -> None:
        """Take out what has to go. The lake is read only if there ever was a waiver for something of the interval."""
        request, place = self.tables.task.request, self.tables.workplace
        if not self.attempt.began:
            return  # a speculative attempt, which has no right to publish yet
        if not all_waivers(request.pipeline.name, request.interval, place.ledger, place.settings):
            return
        claim = Claim(self.attempt.epoch, self.attempt.attempt_id)
        RegionRetraction(self.tables, claim, self.heartbeat).carry_out(self.plan())
        while others := self._others():
            for task in others:
                self._take_out(task)

    def mark(self) -> None:
        """Have each published table mark the rows that stay though a waiver has ended, and no others."""
        request, place = self.tables.task.request, self.tables.workplace
        said = all_waivers(request.pipeline.name, request.interval, place.ledger, place.settings)
        tables = [stage for stage in request.pipeline.stages if stage.output.table and (said or _may_mark(stage))]
        plan = self.plan() if tables and self.attempt.began else None
        for stage in tables if plan else ():
            uri = table_location(place.settings.lake_uri, request.pipeline.name, stage, request.interval).uri
            outstaying = [decision.partition for decision in plan.of(stage.name) if decision.outstays] if plan else []
            if mark_outstaying(uri, request.interval, outstaying):
                self._tell_marked(stage, outstaying)

    def _tell_marked(self, stage: Stage, outstaying: Sequence[int]) -> None:
        place, table = self.tables.workplace, stage.output.table
        if not outstaying:
            place.progress(f"{table}: none of its rows rests on a waiver that has ended any more")
            return
        which = f"{stage.name}[{PartitionSet(outstaying)}]"
        text = f"{which} stays in {table}, marked, though a waiver has ended that it rests on (on_waiver_end: keep)"
        place.warn(self.tables.task.request.run_id, ENDED, stage.name, text)

    def _others(self) -> tuple[RegionTask, ...]:
        """Tasks in whose place rows are taken out; none if this attempt only heals something for another one."""
        if self.tables.task.only is not None:
            return ()
        plan = self.plan()
        return tuple(task for task in self._tasks() if any(decision.retracts for decision in _decisions(task, plan)))

    def _tasks(self) -> Iterator[RegionTask]:
        """Tasks of all other regions, and of the other shares of the own one."""
        own = self.tables.task
        for region in stage_regions(own.pipeline):
            shares = region_shares(own.pipeline, region) if region.name == own.region.name else (None,)
            for share in shares:
                if (region.name, share) != (own.region.name, own.share):
                    yield replace(own, region=region, share=share)

    def _take_out(self, task: RegionTask) -> None:
        self.heartbeat.check()
        place = self.tables.workplace
        try:
            lease = take_lease(task, place)
        except LeaseHeld as held:
            return self.waits.setdefault(task.subject, LeaseWait(task, place)).pause(held)
        tables, claim = RegionTables(task, place), Claim(lease.epoch, self.attempt.attempt_id)
        with kept_alive(lease, place) as heartbeat:
            tables.fence(claim)
            tables.adopt(lease)
            RegionRetraction(tables, claim, heartbeat).carry_out(self.plan())


def _may_mark(stage: Stage) -> bool:
    return stage.output.on_waiver_end is OnWaiverEnd.KEEP


def _decisions(task: RegionTask, plan: ResumePlan) -> Iterator[Decision]:
    for stage in task.region.stages:
        yield from (decision for decision in plan.of(stage) if task.share is None or decision.partition in task.share)


ENDED = "waiver ended"  # the kind of the event that says what became of rows


class RegionRetraction:
    """Takes rows out of the tables of one region that may no longer be shown because a waiver has ended, under its
    lease.

    ``claim`` is the right of the lease's holder; its attempt is of the run that is under way. A table loses all such
    rows in one commit, which is fenced and adopted like any other. The partitions stay recorded with their files: if
    somebody waives them again, they are published again, and nothing is computed.
    """

    def __init__(self, tables: RegionTables, claim: Claim, heartbeat: Heartbeat) -> None:
        self.tables, self.claim, self.heartbeat = tables, claim, heartbeat

    def carry_out(self, plan: ResumePlan) -> None:
        """Take rows out of the share of the region that is worked on."""
        pipeline, share = self.tables.task.pipeline, self.tables.task.share
        for name in self.tables.stages:
            ended = [
                decision
                for decision in plan.of(name)
                if decision.ended and (share is None or decision.partition in share)
            ]
            leaving, staying = (
                [decision for decision in ended if decision.retracts],
                [decision for decision in ended if _is_to_block(decision)],
            )
            if leaving or staying:
                self._stage(pipeline.stage(name), len(plan.of(name)), leaving, staying)

    def _stage(self, stage: Stage, cut_into: int, leaving: Sequence[Decision], staying: Sequence[Decision]) -> None:
        place, location = self.tables.workplace, self.tables.location(stage.name)
        wave = self.tables.waves_of(stage.name, self.claim.attempt_id) + 1
        commit = WaveCommit(
            run_id=self.tables.task.request.run_id,
            stage=stage.id,
            attempt_id=self.claim.attempt_id,
            epoch=self.claim.epoch,
            wave=wave,
            partitions=(),
            cut_into=cut_into,
            note="a waiver has ended",
            retracted=tuple(decision.partition for decision in leaving),
        )
        records = [
            *(_ours(as_retracted(decision.record), decision, commit) for decision in leaving if decision.record),
            *(_ours(as_blocked(decision.record), decision, commit) for decision in staying if decision.record),
        ]
        if leaving:
            place.committer.fence(location, self.claim, self.tables.rivals(stage.name))
        what = Publication(stage.name, location, wave, commit if leaving else None)
        publish(what, lambda _: records, place.committer, self.heartbeat, place)
        for decisions in filter(None, (leaving, staying)):
            self._tell(stage, decisions)

    def _tell(self, stage: Stage, decisions: Sequence[Decision]) -> None:
        which = str(PartitionSet(decision.partition for decision in decisions))
        text = f"{stage.name}[{which}] {'; '.join(grouped(decision.reason for decision in decisions))}"
        self.tables.workplace.warn(self.tables.task.request.run_id, ENDED, stage.name, text)


def _ours(record: PartitionRecord, decision: Decision, wave: WaveCommit) -> PartitionRecord:
    is_damaged = record.state is PartitionState.DAMAGED
    return replace(under(wave, record), reason=record.reason if is_damaged else str(decision.reason))


def _is_to_block(decision: Decision) -> bool:
    """Whether its rows stay in the table and no stage may read them any more, which the ledger does not say yet."""
    own = decision.ended is not None and decision.ended.place == decision.place
    consumable = decision.record is not None and decision.record.state.readable
    return own and consumable and decision.outstays
