"""Writes the life of runs and attempts into the ledger. Truth is written by the attempt itself, never by a listener."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.errors import Fenced
from stagehold.lake.location import path_safe
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Event, Run, RunState
from stagehold.plan.regions import stage_regions
from stagehold.plan.shares import all_finished, region_shares

if TYPE_CHECKING:
    from stagehold.run.region_task import RegionTask


def start_run(task: RegionTask, ledger: Ledger) -> None:
    """The first region of a run to start creates it; a resumed run goes back to running."""
    ledger.runs.start(
        Run(
            run_id=task.run_id,
            pipeline=task.pipeline.name,
            interval=task.interval,
            launcher=task.launcher,
            state=RunState.RUNNING,
            restore_from_stage=task.restore_from_stage,
            started_at=datetime.now(UTC),
            params=dict(task.params),
        )
    )


def start_attempt(task: RegionTask, epoch: int, ledger: Ledger) -> Attempt:
    """Shares of a region draw their epochs from one sequence, so the epoch alone tells its attempts apart."""
    attempt = Attempt(
        attempt_id=path_safe(f"{task.run_id}.{task.region.name}.{epoch}"),
        run_id=task.run_id,
        pipeline=task.pipeline.name,
        interval=task.interval,
        region=task.region.name,
        epoch=epoch,
        state=AttemptState.RUNNING,
        started_at=datetime.now(UTC),
        share=None if task.share is None else str(task.share),
    )
    ledger.attempts.start(attempt)
    return attempt


def succeed(task: RegionTask, attempt: Attempt, ledger: Ledger, summary: str) -> None:
    """The last stage is consumable; the region, or the share of one, that ends last finishes the run."""
    ledger.attempts.finish(attempt.attempt_id, AttemptState.FINISHED, None)
    tell(task, ledger, "finished", summary)
    regions = stage_regions(task.pipeline)
    attempts = {region.name: [one for one in ledger.attempts.of_run(task.run_id) if one.region == region.name] for region in regions}
    parts = ((region, share) for region in regions for share in region_shares(task.pipeline, region))
    if all(all_finished(attempts[region.name], share) for region, share in parts):
        ledger.runs.finish(task.run_id, RunState.FINISHED)


def fail(task: RegionTask, attempt: Attempt, ledger: Ledger, error: BaseException) -> None:
    """A fenced attempt does not fail the run: the newer one that fenced it decides that."""
    if isinstance(error, KeyboardInterrupt):
        cancel(task, attempt, ledger)
        return
    text = str(error) or type(error).__name__
    ledger.attempts.finish(attempt.attempt_id, AttemptState.FAILED, f"{type(error).__name__}: {text}")
    tell(task, ledger, "fenced" if isinstance(error, Fenced) else "failed", text)
    if not isinstance(error, Fenced):
        ledger.runs.finish(task.run_id, RunState.FAILED)


def cancel(task: RegionTask, attempt: Attempt, ledger: Ledger) -> None:
    ledger.attempts.finish(attempt.attempt_id, AttemptState.CANCELED, "cancelled by the user")
    tell(task, ledger, "cancelled", "cancelled by the user")
    ledger.runs.finish(task.run_id, RunState.CANCELED)


def tell(task: RegionTask, ledger: Ledger, kind: str, text: str) -> None:
    ledger.events.append(Event(task.run_id, kind, task.subject, text, datetime.now(UTC)))
