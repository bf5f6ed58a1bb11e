"""Throws a savepoint away: its name first, then what only it needs."""

from __future__ import annotations

from contextlib import suppress

from stagehold.errors import CheckpointCorrupt, LeaseHeld, SavepointInUse
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.run.checkpoints.contents import delete_copies
from stagehold.run.checkpoints.coordinator_lease import discard_stored, take_coordinator_lease
from stagehold.run.equipment.workplace import Workplace


def dispose_of(savepoint: Savepoint, workplace: Workplace) -> None:
    """From the first step on nobody can restore it. Who dies after that leaves the rest to `stagehold gc`, and so does
    this while somebody takes checkpoints of the run.

    Data that only the savepoint needed goes with the next `stagehold gc`.

    :raises SavepointInUse: a run that goes on began with it, and has not taken all of it over.
    """
    savepoints = Savepoints(workplace.settings.lake_uri)
    needing = workplace.ledger.restores.needing(savepoints.stored(savepoint).address(savepoint.number))
    if needing:
        raise SavepointInUse(savepoint.name, needing)
    checkpoint = None
    with suppress(CheckpointCorrupt):  # what cannot be read may be thrown away, too
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
