"""The right to take and to discard checkpoints of a run: whoever has it is alone with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored import StoredCheckpoints
from stagehold.model.records import Lease, Run
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.journal.ownership import this_process

LONGEST = timedelta(hours=1)  # what nobody refers to after so long is of a writer that died


def discard_stored(place: CheckpointedRun, number: int, workplace: Workplace, lease: Lease) -> None:
    """Delete a checkpoint that nobody may restore any more: its row says so before the lake forgets it. There may be no
    row, since a savepoint outlives its ledger.
    """
    for record in workplace.ledger.checkpoints.of_run(place.run_id):
        if record.number == number and record.kept:
            workplace.ledger.checkpoints.discard(record, lease)
    StoredCheckpoints(workplace.settings.lake_uri, place).discard(number, datetime.now(UTC) - LONGEST)


def take_coordinator_lease(run: Run | CheckpointedRun, workplace: Workplace) -> Lease:
    """The right to take checkpoints of the run. Who died with it on this host is robbed of it; who died elsewhere has
    it until it ends.

    :raises LeaseHeld: somebody lives who has it.
    """
    holder = this_process(f"checkpoint {uuid4().hex}")
    seconds = workplace.settings.lease_seconds
    return workplace.ledger.leases.take(coordinator_lease(run), None, str(holder), seconds, holder.may_seize)


def coordinator_lease(run: Run | CheckpointedRun) -> str:
    """Name of the lease without which nobody takes a checkpoint of the run."""
    return f"{run.pipeline}/{run.interval}/{run.run_id}/coordinator"
