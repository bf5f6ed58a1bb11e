"""Writes the life of runs and attempts into the ledger. Truth is written by the attempt itself, never by a listener."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from stagehold.errors import Fenced, StageFailed
from stagehold.lake.location import path_safe
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import TRACE, UNBEGUN, Attempt, AttemptState, Event, FailureClass, Run, RunState
from stagehold.model.states import RUN
from stagehold.plan.failure import diagnose
from stagehold.plan.failure_rules import WORKER_LOST, rules_of
from stagehold.plan.regions import stage_regions
from stagehold.plan.run_restarts import RestartDecision, RestartRules, replay_failures, run_state_after
from stagehold.plan.shares import region_shares
from stagehold.run.verdict import Verdict
from stagehold.settings import Settings

LONGEST_TRACE = 100_000  # letters; the end of a trace says most
LOST = "The attempt ended without a word: its process was killed or its machine was lost. What it had committed is kept."

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
            started_at=datetime.now(UTC),
            params=dict(task.params),
        )
    )


def start_attempt(task: RegionTask, epoch: int, ledger: Ledger) -> Attempt:
    """Shares of a region draw their epochs from one sequence, so the epoch alone tells its attempts apart."""
    attempt = attempt_of(task, epoch, str(epoch))
    ledger.attempts.start(attempt)
    return attempt


def attempt_of(task: RegionTask, epoch: int, name: str) -> Attempt:
    """An attempt that begins now; ``name`` tells it from the region's others in this run.

    Run id and epoch come again after a ledger was lost, while the files of the attempt that had them are still there.
    """
    return Attempt(
        attempt_id=path_safe(f"{task.run_id}.{task.region.name}.{name}.{uuid4().hex[:8]}"),
        run_id=task.run_id,
        pipeline=task.pipeline.name,
        interval=task.interval,
        region=task.region.name,
        epoch=epoch,
        state=AttemptState.RUNNING,
        started_at=datetime.now(UTC),
        share=None if task.share is None else str(task.share),
        restore=task.restore.identity if task.restore else None,
    )


def succeed(task: RegionTask, attempt: Attempt, ledger: Ledger, settings: Settings, summary: str) -> None:
    """The last stage is consumable; the region, or the share of one, that ends last finishes the run."""
    with ledger.together():
        ledger.attempts.finish(attempt.attempt_id, AttemptState.FINISHED, None)
        tell(task, ledger, "finished", summary)
    settle(task, ledger, settings)  # not together: two shares that end at once must each see that the other has ended


def fail(task: RegionTask, attempt: Attempt, ledger: Ledger, settings: Settings, error: BaseException) -> Verdict:
    """Record the failure with its class, and what follows from it: nothing, if a newer attempt has ended this one or fenced it."""
    diagnosis = diagnose(error, rules_of(task.pipeline.failures))
    text = str(error) or type(error).__name__
    recorded = ledger.attempts.finish(
        attempt.attempt_id,
        AttemptState.FAILED,
        text if isinstance(error, StageFailed) else f"{type(error).__name__}: {text}",
        failure_class=diagnosis.kind,
        failure_rule=diagnosis.rule.name,
    )
    decisions = settle(task, ledger, settings)
    verdict = Verdict(diagnosis.kind, diagnosis.rule.name, decisions.get(attempt.attempt_id) if recorded else None)
    if isinstance(error, StageFailed):
        ledger.events.append(Event(task.run_id, TRACE, attempt.attempt_id, error.trace[-LONGEST_TRACE:], datetime.now(UTC)))
    tell(task, ledger, "fenced" if isinstance(error, Fenced) else "failed", f"{verdict}. {text}")
    return verdict


def fail_unbegun(task: RegionTask, since: datetime, ledger: Ledger, settings: Settings, error: BaseException) -> Verdict:
    """Record a try that failed before it had a lease, and so an epoch; and what follows from it."""
    diagnosis, text = diagnose(error, rules_of(task.pipeline.failures)), str(error) or type(error).__name__
    attempt = replace(
        _unbegun(task, since, AttemptState.FAILED),
        failure=f"{type(error).__name__}: {text}",
        failure_class=diagnosis.kind,
        failure_rule=diagnosis.rule.name,
    )
    start_run(task, ledger)
    ledger.attempts.start(attempt)
    verdict = Verdict(diagnosis.kind, diagnosis.rule.name, settle(task, ledger, settings).get(attempt.attempt_id))
    tell(task, ledger, "failed", f"{verdict}. {text}")
    return verdict


def cancel_unbegun(task: RegionTask, since: datetime, ledger: Ledger) -> None:
    """Record that the user cancelled a try before it had a lease."""
    start_run(task, ledger)
    ledger.attempts.start(replace(_unbegun(task, since, AttemptState.CANCELED), failure="cancelled by the user before it began"))
    tell(task, ledger, "cancelled", "cancelled by the user before it began")
    ledger.runs.finish(task.run_id, RunState.CANCELED)


def _unbegun(task: RegionTask, since: datetime, state: AttemptState) -> Attempt:
    now = datetime.now(UTC)
    attempt = attempt_of(task, UNBEGUN, f"{task.share or 'all'}.{now:%Y%m%dT%H%M%S.%f}")
    return replace(attempt, state=state, started_at=since, ended_at=now)


def bury(task: RegionTask, dead: Attempt, ledger: Ledger, settings: Settings) -> RestartDecision | None:
    """End an attempt that lost its lease and never said how it ended. None if it did say, or belongs to another run."""
    ledger.attempts.finish(dead.attempt_id, AttemptState.FAILED, LOST, failure_class=FailureClass.ENVIRONMENT, failure_rule=WORKER_LOST)
    decision = decisions_of(task, ledger, settings).get(dead.attempt_id)
    if decision is not None:
        tell(task, ledger, "failed", f"{Verdict(FailureClass.ENVIRONMENT, WORKER_LOST, decision)}. {LOST}")
    return decision


def cancel(task: RegionTask, attempt: Attempt, ledger: Ledger) -> None:
    """An attempt that a newer one has ended already does not cancel the run."""
    if not ledger.attempts.finish(attempt.attempt_id, AttemptState.CANCELED, "cancelled by the user"):
        return
    tell(task, ledger, "cancelled", "cancelled by the user")
    ledger.runs.finish(task.run_id, RunState.CANCELED)


def settle(task: RegionTask, ledger: Ledger, settings: Settings) -> Mapping[str, RestartDecision]:
    """Bring the run's state up to date with its attempts; gives what follows from each failure."""
    attempts, decisions = ledger.attempts.of_run(task.run_id), decisions_of(task, ledger, settings)
    parts = [(region.name, share) for region in stage_regions(task.pipeline) for share in region_shares(task.pipeline, region)]
    state = run_state_after(parts, attempts, decisions)
    if state is RunState.RESTARTING:
        ledger.runs.await_restart(task.run_id)
    elif RUN.is_terminal(state):
        ledger.runs.finish(task.run_id, state)
    return decisions


def decisions_of(task: RegionTask, ledger: Ledger, settings: Settings) -> Mapping[str, RestartDecision]:
    """What follows from each failure of the run so far, by attempt id."""
    rules = RestartRules(task.pipeline.restart, settings.attempt_retries, task.run_id)
    return replay_failures(ledger.attempts.of_run(task.run_id), rules)


def tell(task: RegionTask, ledger: Ledger, kind: str, text: str) -> None:
    ledger.events.append(Event(task.run_id, kind, task.subject, text, datetime.now(UTC)))
