"""One attempt of a region, from lease to result. Retry, clear, resume, backfill and new runs all come through here."""

from __future__ import annotations

from stagehold.errors import LeaseHeld
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, Lease
from stagehold.run import book
from stagehold.run.attempt import RegionAttempt
from stagehold.run.holder import this_process
from stagehold.run.region_task import Progress, RegionOutcome, RegionTask
from stagehold.run.sessions import release_session, session_id
from stagehold.settings import Settings

__all__ = ["RegionOutcome", "RegionTask", "cancel_region", "run_region"]


def run_region(task: RegionTask, settings: Settings, progress: Progress) -> RegionOutcome:
    """Make every partition of the region consumable, reusing what is.

    Promises that nothing is readable twice or ungated, whenever this process dies. Does not promise that an earlier
    attempt has stopped computing: only that what it does from now on stays unreadable.

    :raises StageholdError: Terminal when another try cannot help, Transient when it may. Errors of stage functions
        come out as they are.
    """
    with Ledger.open(settings.ledger_url) as ledger:
        book.start_run(task, ledger)
        lease = _lease(task, ledger, settings, progress)
        try:
            with Heartbeat(ledger, lease, settings.lease_seconds) as heartbeat:
                return RegionAttempt.begin(task, ledger, heartbeat, settings, progress).run()
        finally:
            ledger.leases.release(lease)


def cancel_region(task: RegionTask, settings: Settings) -> None:
    """Stop the Spark work of the newest attempt: its session is released, so nothing more can be written through it."""
    with Ledger.open(settings.ledger_url) as ledger:
        attempt = ledger.attempts.newest(task.pipeline.name, task.interval, task.region.name)
        if attempt is not None and attempt.state is AttemptState.RUNNING:
            release_session(settings, session_id(settings, attempt.attempt_id))
            book.cancel(task, attempt, ledger)


def _lease(task: RegionTask, ledger: Ledger, settings: Settings, progress: Progress) -> Lease:
    holder = this_process(task.owner)
    try:
        return ledger.leases.acquire(task.lease_name, str(holder), settings.lease_seconds)
    except LeaseHeld as held:
        if not holder.may_seize(held.holder):
            raise
        progress(f"taking {task.lease_name} over from an earlier attempt ({held.holder})")
        return ledger.leases.seize(task.lease_name, str(holder), settings.lease_seconds)
