"""The lease to take and discard checkpoints of a run, and how checkpoints, savepoints and claims are deleted."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from stagehold.errors import CheckpointCorrupt, InvalidArgument, LeaseHeld, SavepointInUse
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.savepoints import FOLDER, Savepoint, Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.location import lake_root
from stagehold.model.choices import ClaimMode
from stagehold.model.records import Lease, Run
from stagehold.run.checkpoints.checkpoint_contents import delete_copies
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.held_leases import COORDINATOR
from stagehold.run.lease.lease_holder import this_process
from stagehold.run.planning.planning import RunRequest, begins_with_of
from stagehold.run.planning.restoring import is_fulfilled
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.settings import Settings

LONGEST = timedelta(hours=1)  # files without a reference for so long are of a writer that died


def discard_stored(place: CheckpointedRun, number: int, workplace: Workplace, lease: Lease) -> None:
    """Delete a checkpoint that no run may restore any more: its row says so before it leaves the lake. There may be no
    row, since a savepoint outlives its ledger.
    """
    for record in workplace.ledger.checkpoints.of_run(place.run_id):
        if record.number == number and record.kept:
            workplace.ledger.checkpoints.discard(record, lease)
    StoredCheckpoints(workplace.settings.lake_uri, place).discard(number, datetime.now(UTC) - LONGEST)


def take_coordinator_lease(run: Run | CheckpointedRun, workplace: Workplace) -> Lease:
    """The lease to take checkpoints of the run. If its holder died on this host, the lease is taken away from it; if it
    died elsewhere, the lease lasts until it ends.

    :raises LeaseHeld: a living process has it.
    """
    holder = this_process(f"checkpoint {uuid4().hex}")
    seconds = workplace.settings.lease_seconds
    return workplace.ledger.leases.take(coordinator_lease(run), None, str(holder), seconds, holder.may_seize)


def coordinator_lease(run: Run | CheckpointedRun) -> str:
    """The name of the lease that is needed to take a checkpoint of the run."""
    return f"{run.pipeline}/{run.interval}/{run.run_id}/{COORDINATOR}"


def dispose_of(savepoint: Savepoint, workplace: Workplace) -> None:
    """Delete a savepoint: from the first step on no run can restore it. A process that dies after that leaves the rest
    to `stagehold gc`; so does this one while another process takes checkpoints of the run.

    Data that only the savepoint needed is deleted by the next `stagehold gc`.

    :raises SavepointInUse: a run that goes on began with it, and has not taken over all of it.
    """
    savepoints = Savepoints(workplace.settings.lake_uri)
    needing = workplace.ledger.restores.needing(savepoints.stored(savepoint).address(savepoint.number))
    if needing:
        raise SavepointInUse(savepoint.name, needing)
    checkpoint = None
    with suppress(CheckpointCorrupt):  # a snapshot that cannot be read may be deleted, too
        checkpoint = savepoints.stored(savepoint).read_checkpoint(savepoint.number)
    savepoints.remove(savepoint)
    if savepoint.root:
        savepoints.delete_own(savepoint)
        return
    if checkpoint:
        delete_copies(checkpoint, savepoint.name)
    try:
        lease = take_coordinator_lease(savepoint.run, workplace)
    except LeaseHeld:
        workplace.progress(f"run {savepoint.run_id} goes on, so the files of {savepoint.name} go with `stagehold gc`")
        return
    try:
        discard_stored(savepoint.run, savepoint.number, workplace, lease)
    finally:
        workplace.ledger.leases.release(lease)


def refuse_foreign_claim(begins_with: BeginsWith, settings: Settings) -> None:
    """Refuse to claim a checkpoint of another lake.

    :raises InvalidArgument: it is in another lake, where we delete nothing.
    """
    own = lake_root(settings.lake_uri)
    if begins_with.root != own and not begins_with.root.startswith(f"{own}/{FOLDER}/"):
        allowed = f"no_claim for {begins_with.name}, which lies in another lake ({begins_with.root})"
        raise InvalidArgument("--claim-mode", ClaimMode.CLAIM, allowed)


class ClaimedSnapshot:
    """A checkpoint of another run, or a ``savepoint``, among the checkpoints of the run that began with it. It is
    deleted by their rule when a newer one replaces it.
    """

    def __init__(self, number: int, of_run: CheckpointedRun, address: str, savepoint: Savepoint | None) -> None:
        self.number, self.of_run, self.address, self.savepoint = number, of_run, address, savepoint

    @staticmethod
    def of(request: RunRequest, workplace: Workplace) -> ClaimedSnapshot | None:
        """The claimed snapshot that may be discarded. None if the run claims nothing, or still needs it: unlike a
        job's, a run's checkpoint does not have data that has not been taken over yet. None, too, once it is gone, and
        for a checkpoint of the run itself.
        """
        asked = request.restore
        if asked is None or asked.claim_mode is not ClaimMode.CLAIM or not is_fulfilled(request, workplace.ledger):
            return None
        begins_with = begins_with_of(request)
        if begins_with is None or asked.snapshot is None:
            return None
        checkpoint = begins_with.plan.checkpoint
        of_run = CheckpointedRun(checkpoint.pipeline, checkpoint.interval, checkpoint.run_id)
        savepoint = _savepoint_at(asked.snapshot, workplace.settings.lake_uri)
        stored = StoredCheckpoints(begins_with.root, of_run)
        is_own = savepoint is None and of_run.run_id == request.run_id
        if is_own or checkpoint.id not in stored.numbers():
            return None
        return ClaimedSnapshot(checkpoint.id, of_run, asked.snapshot, savepoint)

    def discard(self, workplace: Workplace) -> None:
        """Delete it; the name of a savepoint goes first. Files that something else needs, or that are in use, stay;
        `stagehold gc` deletes them later.
        """
        try:
            if self.savepoint is not None:
                dispose_of(self.savepoint, workplace)
            elif not workplace.ledger.restores.needing(self.address):
                lease = take_coordinator_lease(self.of_run, workplace)
                try:
                    discard_stored(self.of_run, self.number, workplace, lease)
                finally:
                    workplace.ledger.leases.release(lease)
        except (LeaseHeld, SavepointInUse) as busy:
            workplace.progress(f"{self.address} was claimed and stays for now: {busy}")


def _savepoint_at(address: str, lake_uri: str) -> Savepoint | None:
    savepoints = Savepoints(lake_uri)
    every = savepoints.all()
    return next(
        (savepoint for savepoint in every if savepoints.stored(savepoint).address(savepoint.number) == address), None
    )
