"""A task asks for splits: before it sees to its own share, it takes what nobody has of all that its region has to do.

What it takes it computes under a lease of its own, as an attempt of just these splits. So two tasks never have the same
ones, whoever takes them over fences who had them, and a failed or dead attempt gives them back. In the end each task
works on its own share as without this, for which it waits until others have ended what they took of that: it succeeds
when its share is consumable, and not before. So whoever reads its share waits for it alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from stagehold.errors import LeaseHeld, PartitionDataMissing
from stagehold.ledger.leases import ShareLease
from stagehold.model.partition_set import Share, overlap
from stagehold.model.records import AttemptState, FailureClass, Lease
from stagehold.model.states import newest_life
from stagehold.plan.split.shares import newest_covering, next_splits, region_shares, share_of
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.journal import journal
from stagehold.run.journal.endings import recorded
from stagehold.run.journal.journal import TOOK, verdict_of
from stagehold.run.lease.lease_holder import owner_of, this_process
from stagehold.run.lease.leasing import POLL_SECONDS, take_lease
from stagehold.run.planning.planning import IntervalView
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.stopping import refuse_suspended

Attempting = Callable[[Lease, RegionTask], RegionOutcome | None]  # None: it has to be done again


class SplitTaking:
    """What a task takes, for as long as its region has something to do that nobody has."""

    def __init__(self, task: RegionTask, workplace: Workplace, attempt: Attempting) -> None:
        assert task.share is not None, "only a region that is split has splits to take"
        self._task, self._own, self._workplace, self._attempt = task, task.share, workplace, attempt

    def take(self) -> tuple[RegionOutcome, ...]:
        """Compute splits until all are done, or in the hands of others, and those of the own share are done; tells what
        came of each attempt.
        """
        outcomes, again = list[RegionOutcome](), True
        with self._recorded():
            journal.go_on(self._task, self._workplace.ledger)
        while again:
            while found := self._taken():
                outcomes.extend(self._computed(*found))
            again = self._has_waited()
        return tuple(outcomes)

    def _recorded(self) -> AbstractContextManager[None]:
        place = self._workplace
        return recorded(self._task, place.ledger, place.settings, place.progress)

    def _computed(self, lease: Lease, part: RegionTask) -> Sequence[RegionOutcome]:
        try:
            outcome = self._attempt(lease, part)
        except PartitionDataMissing as error:
            verdict = verdict_of(error)
            if verdict is None or not verdict.restarts_at_once:
                raise
            self._workplace.progress(f"{error} Computing it again and going on.")
            return ()
        return [outcome] if outcome else ()

    def _taken(self) -> tuple[Lease, RegionTask] | None:
        """The next splits, with their lease."""
        task, place = self._task, self._workplace
        with self._recorded():
            while share := self._next():
                part = replace(task, share=share, asks=False, taken_by=task.share)
                try:
                    lease = take_lease(part, place)
                except LeaseHeld:  # somebody was faster
                    continue
                journal.tell(task, place.ledger, TOOK, f"took {share} of {task.region.name} (epoch {lease.epoch})")
                return lease, part
        return None

    def _has_waited(self) -> bool:
        """Whether splits of the own share were in the hands of others, who have ended by now."""
        waited = False
        with self._recorded():
            while any(overlap(share, self._own) for share in self._held()):
                self._workplace.sleep(POLL_SECONDS)
                waited = True
            refuse_suspended(self._task.request.run_id, self._workplace.ledger)  # it was resumed when this began
        return waited

    def _next(self) -> Share | None:
        parts = region_shares(self._task.pipeline, self._task.region)
        before = [
            lease.share
            for lease in self._leases()
            if lease.share not in (None, *parts) and owner_of(lease.holder) == self._task.owner
        ]
        to_do = self._to_do() - self._failed_elsewhere()
        return next_splits(to_do, self._held(), self._own, [share for share in before if share], len(parts))

    def _leases(self) -> Sequence[ShareLease]:
        return self._workplace.ledger.leases.of_shares(self._task.lease_name)

    def _held(self) -> Sequence[Share]:
        """What others work on."""
        holder = this_process(self._task.owner)
        alive = (one for one in self._leases() if one.alive and not holder.may_seize(one.holder))
        return [one.share or Share(0, sys.maxsize) for one in alive]

    def _to_do(self) -> frozenset[int]:
        """Partitions that have to be computed. Code that cannot be compared is never known to have done so, and each
        task computes its own share once.
        """
        task, place = self._task, self._workplace
        view = IntervalView.of_run(task.request, place.ledger, place.settings)
        stages = [task.pipeline.stage(name) for name in task.region.stages]
        if any(view.situation.of(stage.name).facts.code_problem for stage in stages):
            return frozenset()
        plan = view.plan_region(task.region.stages)
        stored = (stage.name for stage in stages if stage.output.stored)
        return frozenset(one.partition for name in stored for one in plan.of(name) if one.action.computes)

    def _failed_elsewhere(self) -> frozenset[int]:
        """Splits of other shares whose last attempt failed by itself: the same would fail in each task. If a worker was
        lost, anybody may take what it had.
        """
        attempts = self._workplace.ledger.attempts.of_run(self._task.request.run_id)
        newest = newest_covering((one for one in attempts if one.region == self._task.region.name and one.began), None)
        failed = (one for one in newest if one.failure_class not in (None, FailureClass.ENVIRONMENT))
        shares = (share for one in failed if (share := share_of(one)) and one.state is AttemptState.FAILED)
        return frozenset(split for share in shares for split in share.partitions if split not in self._own)


def with_taken(
    outcome: RegionOutcome, taken: Sequence[RegionOutcome], task: RegionTask, workplace: Workplace, began: datetime
) -> RegionOutcome:
    """What came of a task that took splits before it saw to its share. It reused what was there when the run began, or
    the task, if that was tried before: else what others took of it would count twice.
    """
    records = workplace.ledger.partitions.newest_of(task.pipeline.name, task.request.interval)
    stages = [task.pipeline.stage(name) for name in task.region.stages]
    own = (one for stage in stages for one in records.get(stage.id, ()) if task.share and one.partition in task.share)
    history = newest_life(workplace.ledger.transitions.of_run(task.request.run_id))
    since = began if task.again or not history else history[0].recorded_at
    return RegionOutcome(
        reused=min(outcome.reused, sum(one.recorded_at < since for one in own)),
        computed=outcome.computed + sum(each.computed for each in taken),
        waves=outcome.waves + sum(each.waves for each in taken),
        seconds=outcome.seconds + sum(each.seconds for each in taken),
        along=outcome.along + sum(each.along for each in taken),
    )
