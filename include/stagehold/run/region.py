"""One attempt of a region, from lease to result. Retry, clear, resume, backfill and new runs all come through here."""

from __future__ import annotations

import time
from functools import partial

from stagehold.errors import LeaseHeld, PartitionDataMissing
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, Lease
from stagehold.run import book
from stagehold.run.attempt import RegionAttempt
from stagehold.run.holder import this_process
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.sessions import release_session, session_id
from stagehold.settings import Settings

MOST_LOSSES = 3  # of data that disappears while an attempt reads it; more is no accident
POLL_SECONDS = 1.0

__all__ = ["RegionOutcome", "RegionTask", "cancel_region", "run_region", "take_lease"]


def run_region(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    """Make every partition of the region consumable, reusing what is.

    Data that other regions made and that is lost is healed first, as little of it as is needed; so is what disappears
    while it is read, by another attempt that goes on where this one stopped.

    Promises that nothing is readable twice or ungated, whenever this process dies. Does not promise that an earlier
    attempt has stopped computing: only that what it does from now on stays unreadable.

    :raises StageholdError: Terminal when another try cannot help, Transient when it may. Errors of stage functions
        come out as they are.
    """
    with Ledger.open(settings.ledger_url) as ledger:
        for _ in range(MOST_LOSSES):
            book.start_run(task, ledger)
            try:
                return _attempt(task, ledger, settings, progress)
            except PartitionDataMissing as error:
                progress(f"{error} Computing it again and going on.")
        book.start_run(task, ledger)
        return _attempt(task, ledger, settings, progress)


def cancel_region(task: RegionTask, settings: Settings) -> None:
    """Stop the Spark work of the newest attempts: their sessions are released, so nothing more can be written through them."""
    with Ledger.open(settings.ledger_url) as ledger:
        for attempt in ledger.attempts.newest(task.pipeline.name, task.interval, task.region.name, task.share):
            if attempt.state is AttemptState.RUNNING:
                release_session(settings, session_id(settings, attempt.attempt_id))
                book.cancel(task, attempt, ledger)


def _attempt(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> RegionOutcome:
    lease = take_lease(task, ledger, settings, progress)
    try:
        with Heartbeat(ledger, lease, settings.lease_seconds) as heartbeat:
            return RegionAttempt.begin(task, ledger, heartbeat, settings, progress, partial(_heal, ledger, settings, progress)).run()
    finally:
        ledger.leases.release(lease)


def _heal(ledger: Ledger, settings: Settings, progress: Progress, task: RegionTask) -> None:
    """Have an attempt of another region heal what one of ours needs, under that region's own lease.

    Does nothing but wait a moment while somebody else has that lease: its holder may heal the same data for another
    reader, or be the region's own task, so the caller has to look again at what is still lost.
    """
    try:
        _attempt(task, ledger, settings, progress)
    except LeaseHeld as held:
        progress(f"waiting for {held.holder}, who works on {task.region.name}")
        time.sleep(POLL_SECONDS)


def take_lease(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> Lease:
    """The lease of the task's share, and of nobody else's any more.

    :raises LeaseHeld: somebody who lives, and is not an earlier try of the same owner, works on a part of it.
    """
    holder = this_process(task.owner)

    def may_seize(held_by: str) -> bool:
        seizable = holder.may_seize(held_by)
        if seizable:
            progress(f"taking {task.lease_name} over from an earlier attempt ({held_by})")
        return seizable

    return ledger.leases.take(task.lease_name, task.share, str(holder), settings.lease_seconds, may_seize)
