"""Who has the lease of a region: how it is taken, who may take it over, and how a newcomer waits meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from stagehold.errors import LeaseHeld, LeaseLost, LeaseNotFreed
from stagehold.extensions.leadership import Leadership, LeadershipChange, tell_leadership
from stagehold.ledger.leases import Heartbeat
from stagehold.model.pulse import Meter
from stagehold.model.records import Lease
from stagehold.model.states import ATTEMPT
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.journal import journal
from stagehold.run.lease.lease_holder import described, this_process
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.task import RegionTask

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
NEXT_REPORT = 30.0  # seconds until it is said again who is waited for; then twice as many each time


def take_lease(task: RegionTask, workplace: Workplace) -> Lease:
    """The lease of the task's share, and of nobody else's any more.

    Its epoch is above the ledger's and above that of the tables' own logs, which remember what a lost ledger does not.

    :raises LeaseHeld: somebody who lives, and is not an earlier try of the same owner, works on a part of it.
    """
    holder = this_process(task.owner)

    def may_seize(held_by: str) -> bool:
        seizable = holder.may_seize(held_by)
        if seizable:
            workplace.progress(f"taking {task.lease_name} over from an earlier attempt ({held_by})")
        return seizable

    above, seconds = RegionTables(task, workplace).newest_epoch(), workplace.settings.lease_seconds
    return workplace.ledger.leases.take(task.lease_name, task.share, str(holder), seconds, may_seize, above=above)


@contextmanager
def kept_alive(lease: Lease, workplace: Workplace, meter: Meter | None = None) -> Iterator[Heartbeat]:
    """Renew a lease in the block, and release it behind that. A ``meter`` measures the work that is done under it."""
    try:
        with beating(lease, workplace, meter) as heartbeat:
            yield heartbeat
    finally:
        workplace.ledger.leases.release(lease)


def beating(lease: Lease, workplace: Workplace, meter: Meter | None = None) -> Heartbeat:
    """A heartbeat that says in the log when the lease cannot be renewed, and tells listeners what becomes of it."""

    def tell(change: LeadershipChange) -> None:
        if change.what in (Leadership.LATE, Leadership.LOST, Leadership.REVOKED):
            workplace.progress(f"the lease of {change.lease} (epoch {change.epoch}) is {change.what}: {change.reason}")
        tell_leadership(change)

    return Heartbeat(workplace.ledger.leases, lease, workplace.settings.lease_seconds, meter, tell=tell)


class LeaseWait:
    """A wait for the lease of ``task``. It goes on until the lease is free:
    what its holder left is planned with then. ``now`` gives the time in seconds.
    """

    def __init__(self, task: RegionTask, workplace: Workplace, now: Callable[[], float] = time.monotonic) -> None:
        self.task, self.workplace, self._now = task, workplace, now
        self._begun: float = now()
        self._pause: float = FIRST_PAUSE
        self._next_report: float = 0.0

    def pause(self, held: LeaseHeld) -> None:
        """Wait a moment, longer each time.

        :raises LeaseNotFreed: the time to wait is over.
        """
        waited = self._now() - self._begun
        if waited >= self.workplace.settings.lease_wait_seconds:
            raise LeaseNotFreed(self.task.subject, described(held.holder), self._since(), waited)
        if waited >= self._next_report:
            self._tell(held, waited)
            self._next_report = max(NEXT_REPORT, 2 * waited)
        self.workplace.sleep(min(self._pause, self.workplace.settings.lease_wait_seconds - waited))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _tell(self, held: LeaseHeld, waited: float) -> None:
        since = self._since()
        begun = f", since {since:%H:%M:%S} UTC" if since else ""
        text = f"waits for {described(held.holder)}, who works on {self.task.subject}{begun}"
        most = self.workplace.settings.lease_wait_seconds
        self.workplace.progress(f"{self.task.subject} {text}; for {waited:.0f} s now, for {most} s at most")
        if waited < NEXT_REPORT:
            journal.tell(self.task, self.workplace.ledger, "waiting", text)

    def _since(self) -> datetime | None:
        task = self.task
        newest = self.workplace.ledger.attempts.newest(
            task.pipeline.name, task.request.interval, task.region.name, task.share
        )
        return next((attempt.started_at for attempt in newest if not ATTEMPT.is_terminal(attempt.state)), None)


POLL_SECONDS = 1.0


def wait_for_faster(lease: Lease, workplace: Workplace, done: Callable[[], ResumePlan | None]) -> ResumePlan:
    """Wait until the attempt that has taken the share over has left nothing to compute; gives the plan that says so.

    :raises LeaseLost: it ended before that, so another try has to do the rest.
    """
    while True:
        others_at_work = workplace.ledger.leases.alive(lease.name)
        if (plan := done()) is not None:
            return plan
        if not others_at_work:
            raise LeaseLost(lease.name, lease.epoch, "a faster attempt took the work over and ended before it was done")
        workplace.sleep(POLL_SECONDS)
