"""Runs that repair data: what a scrub found, and an interval that is put back to a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.checkpoints.restore import under_present_ids
from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import RollbackIncomplete, StageholdError
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.model.records import Event
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.scrub import StageScrub, after_healing, found_in, left_alone, to_heal
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import new_restore_of_snapshot
from stagehold.run.planning.task import RegionOutcome
from stagehold.run.upkeep.scrubbing import ScrubPlace, scrub
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import is_incremental
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.reads import ReadsForm


def rollback_request(savepoint: Savepoint, pipeline: Pipeline, settings: Settings) -> RunRequest:
    """A run of the savepoint's interval that puts published data back as the savepoint has it on record."""
    stored = Savepoints(settings.lake_uri).stored(savepoint)
    manifest, taken = stored.address(savepoint.number), stored.read_checkpoint(savepoint.number)
    run_id = f"{pipeline.name}/rollback__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    restore = new_restore_of_snapshot(run_id, manifest, allow_non_restored=True, as_recorded=True)
    snapshots = {snapshot.shape.id: snapshot for snapshot in under_present_ids(taken.stages, pipeline)}
    stages = tuple(_as_it_was(stage, snapshots.get(stage.id)) for stage in pipeline.stages)
    whole = pipeline.model_copy(update={"stages": stages})
    return RunRequest(whole, run_id, savepoint.interval, pipeline.params, restore)


def _as_it_was(stage: Stage, snapshot: StageSnapshot | None) -> Stage:
    """The pipeline cut as it was then, in one task, so that each table gets one commit. Its inputs are looked at only
    where commits have to say what was taken of them.
    """
    alone: dict[str, object] = {"max_parallel_tasks": 1, "reads": ReadsForm()}
    if not is_incremental(stage):
        alone["source"] = None
    if snapshot is not None:
        alone |= {
            "partitions": snapshot.parallelism,
            "max_parallelism": snapshot.max_parallelism,
            "max_parallelism_declared": False,
            "auto_partitions": False,
        }
    return stage.model_copy(update=alone)


def rollback_plan(savepoint: Savepoint, request: RunRequest, settings: Settings) -> ResumePlan:
    """What would be put back.

    :raises RollbackIncomplete: something would have to be computed for that.
    """
    plan = current_plan(request, settings)
    missing = {
        stage: len([decision for decision in plan.of(stage) if decision.action.computes])
        for stage in plan.stages_that_compute()
    }
    if missing:
        raise RollbackIncomplete(savepoint.name, missing)
    return plan


def roll_back(
    savepoint: Savepoint, request: RunRequest, who: str, reason: str, settings: Settings, progress: Progress
) -> RegionOutcome:
    """Give each table the savepoint's rows by one commit on top of its present ones; the run records who wanted that.

    :raises RollbackIncomplete: before anything is changed.
    """
    rollback_plan(savepoint, request, settings)
    outcome = run_locally(request, settings, progress)
    text = f"{who} put {request.interval} back to savepoint {savepoint.name}{f': {reason}' if reason else ''}"
    with open_ledger(settings) as ledger:
        ledger.events.append(Event(request.run_id, "rolled back", savepoint.name, text, datetime.now(UTC)))
    return outcome


def heal(
    requests: Sequence[RunRequest], results: Sequence[StageScrub], place: ScrubPlace
) -> tuple[tuple[StageScrub, ...], tuple[str, ...]]:
    """Heal what a scrub found. Returns the results after that, and what kept intervals from being healed.

    The run does whatever a run of its interval would do now, and computes missing partitions even if nothing reads
    them. Then the findings are looked at again.
    """
    by_place = {(request.pipeline.name, request.interval): request for request in requests}
    wanted = to_heal(results)
    failures = [
        _not_healed(*key, f"{who}. Run this again when that has ended.") for key, who in left_alone(results).items()
    ]
    for key, partitions in wanted.items():
        place.progress(f"healing {key[0]} for {key[1]}")
        try:
            outcome = run_locally(replace(by_place[key], wanted=partitions), place.settings, place.progress)
            place.progress(f"{key[0]} for {key[1]}: {outcome}")
        except StageholdError as error:
            failures.append(_not_healed(*key, str(error)))
    again = scrub([by_place[key] for key in wanted], found_in(results), place)
    return after_healing(results, again), tuple(failures)


def _not_healed(pipeline: str, interval: str, why: str) -> str:
    return f"{pipeline} for {interval} was not healed: {why}"
