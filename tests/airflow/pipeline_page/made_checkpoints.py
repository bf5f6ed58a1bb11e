"""Checkpoints of a run, written into the ledger as a coordinator would have left them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from tests.airflow.made_runs import HalfDone

from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import (
    Answer,
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    CheckpointTrigger,
)
from stagehold.settings import load_settings

ASKED = ("orders", "lineitem")  # the regions whose attempts have a part in each
FAILURE = "lineitem was closing"


def make_checkpoints(run: HalfDone) -> None:
    """The first is completed, the second failed since a region declined, the third waits for answers."""
    run_id = f"{run.dag_id}/{run.run_id}"
    with Ledger.open(load_settings().ledger_url) as ledger:
        lease = ledger.leases.take(f"coordinator of {uuid4()}", None, "the test", 60, lambda _: False)
        attempts = [one for one in ledger.attempts.of_run(run_id) if one.region in ASKED]
        of = {one.region: one.attempt_id for one in attempts}
        done, failed, waiting = (ledger.checkpoints.begin(_record(run_id, run, number), lease) for number in (1, 2, 3))
        for one in (done, failed, waiting):
            ledger.acknowledgements.ask(one, attempts, lease)
        ledger.acknowledgements.settle(done)
        ledger.acknowledgements.answer(failed, of["orders"], Answer.ACKNOWLEDGED)
        reason = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
        ledger.acknowledgements.answer(failed, of["lineitem"], Answer.DECLINED, reason)
        ledger.checkpoints.complete(done, lease, written=2048, referenced=3072, covers=1)
        ledger.checkpoints.fail(failed, lease, reason, FAILURE)


def take_checkpoint(run: HalfDone, ledger: Ledger, number: int, covers: int) -> None:
    """One in which nobody had a part, with all that is on record up to a row."""
    lease = ledger.leases.take(f"coordinator of {uuid4()}", None, "the test", 60, lambda _: False)
    begun = ledger.checkpoints.begin(_record(f"{run.dag_id}/{run.run_id}", run, number), lease)
    ledger.checkpoints.complete(begun, lease, written=2048, referenced=3072, covers=covers)


def _record(run_id: str, run: HalfDone, number: int) -> CheckpointRecord:
    trigger, state = CheckpointTrigger.PERIODIC, CheckpointState.IN_PROGRESS
    return CheckpointRecord(run_id, number, run.dag_id, run.run_id, trigger, state, datetime.now(UTC))
