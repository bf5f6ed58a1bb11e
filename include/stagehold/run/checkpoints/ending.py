"""The checkpoint that a run leaves when it ends, finished or not."""

from __future__ import annotations

import logging

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.settings import retention_of
from stagehold.checkpoints.store import DELETED_AT, CompletedCheckpoint
from stagehold.errors import LeaseHeld, StageholdError
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointTrigger
from stagehold.model.records import Lease, Run
from stagehold.model.states import GLOBALLY_TERMINAL
from stagehold.run.checkpoints.coordinator_lease import take_coordinator_lease
from stagehold.run.checkpoints.listeners import say
from stagehold.run.checkpoints.taking import RunCheckpoints
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.planning.planning import RunRequest

MOMENT = 0.1

log = logging.getLogger(__name__)


def leave_checkpoint(request: RunRequest, workplace: Workplace) -> None:
    """Take a checkpoint if the run has ended, and none was taken since; or delete all of them, if it was cancelled and
    its author wants that.

    Fails nobody: what the run has reached is on record without it, and the next end of the run takes one. A process
    that dies between the end of the run and its checkpoint leaves none.
    """
    try:
        with naming_storage(workplace.settings):
            run = workplace.ledger.runs.get(request.run_id)
            if run.state in GLOBALLY_TERMINAL:
                _end(run, request, workplace)
    except LeaseHeld:
        log.info("somebody else takes a checkpoint of run %s", request.run_id)
    except Exception as error:
        told_on_purpose = isinstance(error, StageholdError)
        log.warning("no checkpoint was left of run %s", request.run_id, exc_info=not told_on_purpose)
        workplace.progress(f"no checkpoint was left of run {request.run_id}: {error}")


def _end(run: Run, request: RunRequest, workplace: Workplace) -> None:
    """:raises LeaseHeld: somebody else is at it, and goes on."""
    lease = _lease_when_free(run, workplace)
    try:
        with Heartbeat(workplace.ledger, lease, workplace.settings.lease_seconds) as heartbeat:
            checkpoints = RunCheckpoints(run, request, workplace, heartbeat)
            if run.state in DELETED_AT[retention_of(request.pipeline.checkpoint)]:
                _delete_all(checkpoints)
            elif not checkpoints.is_covered():
                _take(checkpoints)
    finally:
        workplace.ledger.leases.release(lease)


def _lease_when_free(run: Run, workplace: Workplace) -> Lease:
    """Whoever has it may be ending just now, or may have died with it elsewhere; one that is renewed beyond the end
    that it has now is somebody's at work.
    """
    waited, step, longest = 0.0, MOMENT, None
    while True:
        try:
            return take_coordinator_lease(run, workplace)
        except LeaseHeld as held:
            longest = max(held.seconds_left, 0) + MOMENT if longest is None else longest
            if waited >= longest:
                raise
        step = min(2 * step, longest - waited)
        workplace.sleep(step)
        waited += step


def _delete_all(checkpoints: RunCheckpoints) -> None:
    run = checkpoints.run
    checkpoints.clear_up()
    deleted = checkpoints.store.end(retention_of(checkpoints.request.pipeline.checkpoint), run.state).deleted
    for entry in deleted:
        checkpoints.discard(entry.id, entry.id)
    if deleted:
        numbers = ", ".join(str(entry.id) for entry in deleted)
        checkpoints.workplace.progress(f"deleted checkpoints {numbers} of run {run.run_id}, which was cancelled")


def _take(checkpoints: RunCheckpoints) -> None:
    checkpoints.clear_up()
    record = checkpoints.begin(checkpoints.next_number, CheckpointTrigger.END_OF_RUN)
    try:
        manifest, covers = checkpoints.write(record)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        checkpoints.fail(record, CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE, text)
        raise
    _, dropped = checkpoints.store.add(CompletedCheckpoint(record.number, SnapshotKind.CHECKPOINT))
    completed = checkpoints.complete(record, manifest, covers)
    for entry in dropped:
        checkpoints.discard(entry.id, record.number)
    say(completed, checkpoints.workplace)
