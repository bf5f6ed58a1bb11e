"""Puts an interval back to a savepoint as it was, whatever code and sources are now; nothing is computed."""

from __future__ import annotations

from datetime import UTC, datetime

from stagehold.errors import RollbackIncomplete
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.lake.chronicle import open_ledger
from stagehold.model.records import Event
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.attempt.task import RegionOutcome
from stagehold.run.local_run import current_plan, run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import new_restore_of_snapshot
from stagehold.run.workplace import Progress
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


def rollback_request(savepoint: Savepoint, pipeline: Pipeline, settings: Settings) -> RunRequest:
    """A run of the savepoint's interval that takes all over as it is recorded there. No region is dealt out to several
    tasks, so each table gets one commit.
    """
    manifest = Savepoints(settings.lake_uri).stored(savepoint).address(savepoint.number)
    run_id = f"{pipeline.name}/rollback__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    restore = new_restore_of_snapshot(run_id, manifest, allow_non_restored=True, as_recorded=True)
    stages = tuple(stage.model_copy(update={"max_parallel_tasks": 1}) for stage in pipeline.stages)
    whole = pipeline.model_copy(update={"stages": stages})
    return RunRequest(whole, run_id, savepoint.interval, pipeline.params, restore)


def rollback_plan(savepoint: Savepoint, request: RunRequest, settings: Settings) -> ResumePlan:
    """What would be put back.

    :raises RollbackIncomplete: something would have to be computed for that.
    """
    plan = current_plan(request, settings)
    missing = {
        stage: len([one for one in plan.of(stage) if one.action.computes]) for stage in plan.stages_that_compute()
    }
    if missing:
        raise RollbackIncomplete(savepoint.name, missing)
    return plan


def roll_back(
    savepoint: Savepoint, request: RunRequest, who: str, reason: str, settings: Settings, progress: Progress
) -> RegionOutcome:
    """Each table gets the savepoint's rows by one commit on top of what it has, and the run says who wanted that.

    :raises RollbackIncomplete: before anything is changed.
    """
    rollback_plan(savepoint, request, settings)
    outcome = run_locally(request, settings, progress)
    text = f"{who} put {request.interval} back to savepoint {savepoint.name}{f': {reason}' if reason else ''}"
    with open_ledger(settings) as ledger:
        ledger.events.append(Event(request.run_id, "rolled back", savepoint.name, text, datetime.now(UTC)))
    return outcome
