"""A run that is suspended: what is at work ends behind its wave, and nothing begins until somebody resumes it."""

from __future__ import annotations

from stagehold.errors import RunSuspended
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointTrigger
from stagehold.model.records import RunState
from stagehold.model.states import newest_life


def refuse_suspended(run_id: str, ledger: Ledger) -> None:
    """:raises RunSuspended: the run is, with the savepoint that it was stopped with, if it was."""
    if ledger.runs.get(run_id).state is RunState.SUSPENDED:
        raise RunSuspended(run_id, _savepoint_of(run_id, ledger))


def _savepoint_of(run_id: str, ledger: Ledger) -> str | None:
    """Of this life of the run: one that was suspended before may have had a savepoint then."""
    began = newest_life(ledger.transitions.of_run(run_id))[0].recorded_at
    stopped = [
        one
        for one in ledger.checkpoints.of_run(run_id)
        if one.trigger is CheckpointTrigger.STOP and one.ended_at is not None and one.ended_at >= began
    ]
    return stopped[-1].savepoint if stopped else None
