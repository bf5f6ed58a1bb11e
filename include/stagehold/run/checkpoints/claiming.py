"""What a run began with and claims: its own from the moment that it has taken all of it over."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.errors import InvalidArgument, LeaseHeld, SavepointInUse
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.savepoints import FOLDER, Savepoint, Savepoints
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.lake.store.location import lake_root
from stagehold.model.restore_choices import ClaimMode
from stagehold.run.checkpoints.coordinator_lease import discard_stored, take_coordinator_lease
from stagehold.run.checkpoints.disposing import dispose_of
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.planning.planning import RunRequest, begins_with_of
from stagehold.run.planning.restoring import is_fulfilled
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.settings import Settings


def refuse_foreign_claim(begins_with: BeginsWith, settings: Settings) -> None:
    """:raises InvalidArgument: it lies in another lake, where nothing of ours is deleted."""
    own = lake_root(settings.lake_uri)
    if begins_with.root != own and not begins_with.root.startswith(f"{own}/{FOLDER}/"):
        allowed = f"no_claim for {begins_with.name}, which lies in another lake ({begins_with.root})"
        raise InvalidArgument("--claim-mode", ClaimMode.CLAIM, allowed)


@dataclass(frozen=True)
class ClaimedSnapshot:
    """A checkpoint of another run, or a ``savepoint``, among the checkpoints of the run that began with it. It is
    dropped by their rule when a newer one replaces it.
    """

    number: int
    of_run: CheckpointedRun
    address: str
    savepoint: Savepoint | None

    @staticmethod
    def of(request: RunRequest, workplace: Workplace) -> ClaimedSnapshot | None:
        """None if the run claims nothing, or still needs it: unlike a job's, a run's checkpoint does not have what has
        not been taken over yet. None, too, once it is gone, and for a checkpoint of the run itself.
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
        """Delete it, and a savepoint's name first. What somebody else needs, or is busy with, stays; what is left of it
        goes with `stagehold gc`.
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
    return next((one for one in every if savepoints.stored(one).address(one.number) == address), None)
