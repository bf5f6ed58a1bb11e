"""One attempt of a region, from lease to result. Retry, clear, resume, backfill and new runs all come through here."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagehold.errors import LeaseHeld, PartitionDataMissing, RestartRefused
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease
from stagehold.model.states import ATTEMPT
from stagehold.run import book
from stagehold.run.attempt import RegionAttempt
from stagehold.run.holder import this_process
from stagehold.run.lease_wait import LeaseWait
from stagehold.run.log_epochs import newest_epoch_in_logs
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.speculation import Helper
from stagehold.run.unbegun import recorded
from stagehold.run.verdict import verdict_of
from stagehold.settings import Settings

__all__ = ["RegionOutcome", "RegionTask", "run_region", "take_lease"]


def run_region(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    """Make every partition of the region consumable, reusing what is.

    Data that other regions made and that is lost is healed first, as little of it as is needed; so is what disappears
    while it is read, by another attempt that goes on where this one stopped.

    Promises that nothing is readable twice or ungated, whenever this process dies. Does not promise that an earlier
    attempt has stopped computing: only that what it does from now on stays unreadable. A KeyboardInterrupt, wherever it
    comes, cancels: the Spark session is released on the way out, and attempt and run are CANCELED.

    :raises StageholdError: Terminal when another try cannot help, Transient when it may. Errors of stage functions
        come out as they are.
    """
    with Ledger.open(settings.ledger_url, task.redact) as ledger, ledger.kept_open():
        outcome = _attempt_again_after_losses(task, ledger, settings, progress)
        Helper(task, ledger, settings, progress, Healer(ledger, settings, progress)).help_slow_shares()
        return outcome


def _attempt_again_after_losses(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> RegionOutcome:
    while True:
        book.start_run(task, ledger)
        try:
            return _attempt(task, ledger, settings, progress)
        except PartitionDataMissing as error:
            verdict = verdict_of(error)
            if verdict is None or not verdict.at_once:
                raise
            progress(f"{error} Computing it again and going on.")


def _attempt(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> RegionOutcome:
    with recorded(task, ledger, settings, progress):
        lease = _lease_when_free(task, ledger, settings, progress)
    return _attempt_with(lease, task, ledger, settings, progress)


def _attempt_with(lease: Lease, task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> RegionOutcome:
    try:
        _bury_the_dead(task, ledger, settings, progress)
        with Heartbeat(ledger, lease, settings.lease_seconds) as heartbeat:
            return RegionAttempt.begin(task, ledger, heartbeat, settings, progress, Healer(ledger, settings, progress)).run()
    finally:
        ledger.leases.release(lease)


@dataclass(frozen=True)
class Healer:
    """Has an attempt of another region heal what one of ours needs, under that region's own lease.

    Does nothing but wait a moment while somebody else has that lease: its holder may heal the same data for another
    reader, or be the region's own task, so the caller has to look again at what is still lost.
    """

    ledger: Ledger
    settings: Settings
    progress: Progress
    waits: dict[str, LeaseWait] = field(default_factory=dict)

    def __call__(self, task: RegionTask) -> None:
        try:
            lease = take_lease(task, self.ledger, self.settings, self.progress)
        except LeaseHeld as held:
            known = self.waits.setdefault(task.lease_name, LeaseWait(task, self.ledger, self.settings, self.progress))
            return known.pause(held)
        self.waits.pop(task.lease_name, None)
        _attempt_with(lease, task, self.ledger, self.settings, self.progress)


def _lease_when_free(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> Lease:
    """Whoever works on this share is let finish: the plan that follows reuses what they made, and usually all of it.

    :raises LeaseNotFreed: they did not finish in time.
    """
    wait = LeaseWait(task, ledger, settings, progress)
    while True:
        try:
            return take_lease(task, ledger, settings, progress)
        except LeaseHeld as held:
            wait.pause(held)


def take_lease(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> Lease:
    """The lease of the task's share, and of nobody else's any more.

    Its epoch is above the ledger's and above that of the tables' own logs, which remember what a lost ledger does not.

    :raises LeaseHeld: somebody who lives, and is not an earlier try of the same owner, works on a part of it.
    """
    holder = this_process(task.owner)

    def may_seize(held_by: str) -> bool:
        seizable = holder.may_seize(held_by)
        if seizable:
            progress(f"taking {task.lease_name} over from an earlier attempt ({held_by})")
        return seizable

    above = newest_epoch_in_logs(task, settings)
    return ledger.leases.take(task.lease_name, task.share, str(holder), settings.lease_seconds, may_seize, above=above)


def _bury_the_dead(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> None:
    """Whoever has the lease knows that an attempt which is still RUNNING in the ledger is dead, or cannot publish any more.

    A launcher that tries again by itself could not ask the strategy about a process that was killed, so it is asked here.
    """
    for dead in ledger.attempts.newest(task.pipeline.name, task.interval, task.region.name, task.share):
        decision = None if ATTEMPT.is_terminal(dead.state) else book.bury(task, dead, ledger, settings)
        if decision is None:
            continue
        progress(f"{task.subject}: epoch {dead.epoch} ended without a word; {decision.reason}")
        if task.again and not decision.restart:
            book.settle(task, ledger, settings)
            raise RestartRefused(task.subject, decision.reason)
