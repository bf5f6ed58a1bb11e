"""Writes the life of runs and attempts into the ledger. Truth is written by the attempt itself, never by a listener."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from stagehold.errors import Fenced, RunSuspended, StageFailed
from stagehold.extensions.enriching import FailedAttempt, labels_of
from stagehold.lake.store.location import path_safe
from stagehold.ledger.attempts import Failure
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import TRACE, UNBEGUN, Attempt, AttemptState, Event, FailureClass, Run, RunState
from stagehold.model.states import AttemptEvent, RunEvent, newest_life
from stagehold.plan.restart.left_out_hosts import HOST
from stagehold.plan.restart.replay import RestartDecision, RestartRules, replay_failures, run_state_after
from stagehold.plan.restart.rules import WORKER_LOST, Diagnosis, diagnose, rules_of
from stagehold.plan.split.regions import region_parts
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.run.stopping.stopping import at_work, refuse_suspended
from stagehold.settings import Settings

TOOK = "took"  # the kind of an event: a task took splits, of its own share or of another's
LONGEST_TRACE = 100_000  # characters; the end of a trace says most
LOST = (
    "The attempt ended without a word: its process was killed or its machine was lost. What it had committed is kept."
)


def create_attempt(task: RegionTask, ledger: Ledger) -> Attempt:
    """A new attempt, and its run if there is none yet; neither goes on before the attempt is scheduled."""
    attempt = attempt_of(task, ledger)
    with ledger.together():
        ledger.runs.create(run_of(task.request, task.launcher))
        ledger.attempts.create(attempt)
    return attempt


def schedule_attempt(task: RegionTask, attempt: Attempt, ledger: Ledger, settings: Settings) -> None:
    """Record that the attempt waits for its lease from now on. The first attempt starts the run, and one that is made
    after the run has ended begins a new life of it.

    A run that waited for a restart, was failing or was being cancelled goes on, unless another region is a reason for
    that, too.

    :raises RunSuspended: the run was suspended, and nobody has resumed it.
    """
    with ledger.together():
        ledger.runs.lock(task.request.run_id)  # who suspends the run now waits, and ends what begins here
        refuse_unless_resumed(task, ledger)
        ledger.runs.start(run_of(task.request, task.launcher))
        ledger.attempts.apply(attempt.attempt_id, AttemptEvent.SCHEDULE)
        attempts = ledger.attempts.of_run(task.request.run_id)
        state = _state_of(task, attempts, replay_failures(attempts, _rules(task, settings)), ledger)
        if state not in (RunState.FAILED, RunState.CANCELED):
            ledger.runs.begin_life(task.request.run_id)
            ledger.runs.apply(task.request.run_id, RunEvent.START)
        if state is not RunState.RESTARTING:
            ledger.runs.apply(task.request.run_id, RunEvent.RESTARTED)


def run_of(request: RunRequest, launcher: str) -> Run:
    """A run as it is asked for."""
    return Run(
        run_id=request.run_id,
        pipeline=request.pipeline.name,
        interval=request.interval,
        launcher=launcher,
        state=RunState.CREATED,
        started_at=datetime.now(UTC),
        params=dict(request.params),
    )


def attempt_of(task: RegionTask, ledger: Ledger) -> Attempt:
    """An attempt that is made now. Its id contains the time, so it is never used again.

    Run id and epoch may be used again after the loss of a ledger, while files of the attempt that had them are still
    there.
    """
    now = ledger.attempts.now()
    name = f"{task.request.run_id}.{task.region.name}.{task.share or 'all'}.{now:%Y%m%dT%H%M%S}.{uuid4().hex[:8]}"
    return Attempt(
        attempt_id=path_safe(name),
        run_id=task.request.run_id,
        pipeline=task.pipeline.name,
        interval=task.request.interval,
        region=task.region.name,
        epoch=UNBEGUN,
        state=AttemptState.CREATED,
        started_at=now,
        share=None if task.share is None else str(task.share),
        restore=task.request.restore.identity if task.request.restore else None,
        labels={HOST: platform.node()},
    )


def begin_attempt(task: RegionTask, waiting: Attempt, epoch: int, ledger: Ledger) -> Attempt:
    """Record that the attempt has its lease. If it was taken for dead while it waited, a new attempt replaces it."""
    begun = ledger.attempts.begin(waiting.attempt_id, epoch)
    if begun is not None:
        return begun
    again = attempt_of(task, ledger)
    ledger.attempts.create(again, AttemptEvent.SCHEDULE)
    return begin_attempt(task, again, epoch, ledger)


def succeed(task: RegionTask, attempt: Attempt, ledger: Ledger, summary: str) -> None:
    """Record that the last stage is consumable. The run is settled after that is committed: of two shares that end at
    once, each must see that the other has ended.
    """
    with ledger.together():
        ledger.attempts.apply(attempt.attempt_id, AttemptEvent.REPORTED_FINISHED)
        tell(task, ledger, "finished", summary)


def fail(task: RegionTask, attempt: Attempt, ledger: Ledger, settings: Settings, error: BaseException) -> Verdict:
    """Record the failure with its class, and what follows from it: nothing, if a newer attempt has ended this one or
    fenced it.
    """
    diagnosis = diagnose(error, rules_of(task.pipeline.failures))
    text = str(error) or type(error).__name__
    failure = Failure(
        text if isinstance(error, StageFailed) else f"{type(error).__name__}: {text}",
        diagnosis.kind,
        diagnosis.rule.name,
        labels_of(_as_failed(attempt, diagnosis, error)),
    )
    recorded = ledger.attempts.apply(attempt.attempt_id, AttemptEvent.FAIL, failure=failure)
    decisions = settle(task, ledger, settings)
    verdict = Verdict(diagnosis.kind, diagnosis.rule.name, decisions.get(attempt.attempt_id) if recorded else None)
    if isinstance(error, StageFailed):
        ledger.events.append(
            Event(task.request.run_id, TRACE, attempt.attempt_id, error.trace[-LONGEST_TRACE:], datetime.now(UTC))
        )
    tell(task, ledger, "fenced" if isinstance(error, Fenced) else "failed", f"{verdict}. {text}")
    return verdict


def _as_failed(attempt: Attempt, diagnosis: Diagnosis, error: BaseException) -> FailedAttempt:
    """The failure for enrichers. For the error of a stage, that is the error that its function raised."""
    raised = error.__cause__ if isinstance(error, StageFailed) and error.__cause__ else error
    kind, rule = diagnosis.kind, diagnosis.rule.name
    return FailedAttempt(attempt.run_id, attempt.pipeline, attempt.interval, attempt.region, kind, rule, raised)


def record_loss(task: RegionTask, lost: Attempt, ledger: Ledger, settings: Settings) -> RestartDecision | None:
    """End an attempt that lost its lease without recording an end. None if it has recorded one, or belongs to another
    run.
    """
    ledger.attempts.apply(
        lost.attempt_id, AttemptEvent.FAIL, failure=Failure(LOST, FailureClass.ENVIRONMENT, WORKER_LOST)
    )
    attempts = ledger.attempts.of_run(task.request.run_id)
    decision = replay_failures(attempts, _rules(task, settings)).get(lost.attempt_id)
    if decision is not None:
        tell(task, ledger, "failed", f"{Verdict(FailureClass.ENVIRONMENT, WORKER_LOST, decision)}. {LOST}")
    return decision


def cancel(task: RegionTask, attempt: Attempt, ledger: Ledger, asked: KeyboardInterrupt) -> None:
    """Cancel the attempt and the run; an attempt that a newer one has ended does not cancel the run. The interrupt may
    say who asked for it.
    """
    text = f"cancelled {str(asked) or 'by the user'}{'' if attempt.began else ' before it began'}"
    events = (AttemptEvent.CANCEL, AttemptEvent.REPORTED_CANCELED)
    if not ledger.attempts.apply(attempt.attempt_id, *events, failure=Failure(text)):
        return
    tell(task, ledger, "cancelled", text)
    cancel_run(task.request.run_id, ledger)


def suspend(task: RegionTask, attempt: Attempt, ledger: Ledger, why: RunSuspended) -> None:
    """The process that completed the savepoint has SUSPENDED the run; the attempt follows."""
    events = (AttemptEvent.CANCEL, AttemptEvent.REPORTED_CANCELED)
    savepoint = f" with savepoint {why.savepoint}" if why.savepoint else ""
    if ledger.attempts.apply(attempt.attempt_id, *events, failure=Failure(f"suspended{savepoint}")):
        tell(task, ledger, "suspended", f"stopped behind a wave{savepoint}")


def refuse_unless_resumed(task: RegionTask, ledger: Ledger) -> None:
    """Refuse tasks that start or try again after the run was suspended, if nobody resumed them. A task that somebody
    cleared in Airflow is resumed, since it was begun before; a command begins a new life of the run before its tasks. A
    task that takes splits is resumed when it begins to take them.

    :raises RunSuspended: nobody has resumed the run.
    """
    run_id = task.request.run_id
    attempts = ledger.attempts.of_run(run_id)
    begun = any(attempt.subject == task.launched and attempt.began for attempt in attempts)
    begun = begun or any(event.subject == task.launched for event in ledger.events.of_kind(run_id, TOOK))
    if task.again or not begun or task.launcher != "airflow" or task.taken_by is not None:
        refuse_suspended(run_id, ledger)


def go_on(task: RegionTask, ledger: Ledger) -> None:
    """Let a run go on before the task has an attempt: all that it takes splits for is one start of it.

    :raises RunSuspended: the run was suspended, and nobody has resumed it.
    """
    ledger.runs.create(run_of(task.request, task.launcher))
    refuse_unless_resumed(task, ledger)
    ledger.runs.lift_suspension(task.request.run_id)


def cancel_run(run_id: str, ledger: Ledger) -> None:
    """The run is CANCELLING until the last of its attempts under way has ended."""
    with ledger.together():
        ledger.runs.lock(run_id)
        ledger.runs.apply(run_id, RunEvent.CANCEL, *_end_of(ledger.attempts.of_run(run_id), ledger))


def settle(task: RegionTask, ledger: Ledger, settings: Settings) -> Mapping[str, RestartDecision]:
    """Bring the run's state up to date with its attempts; returns what follows from each failure. The region, or the
    share of one, that ends last finishes the run.
    """
    run_id = task.request.run_id
    with ledger.together():
        ledger.runs.lock(run_id)  # before the attempts are read: the last one to end must see the ends of all others
        attempts = ledger.attempts.of_run(run_id)
        decisions = replay_failures(attempts, _rules(task, settings))
        events = _EVENTS[_state_of(task, attempts, decisions, ledger)]
        ledger.runs.apply(run_id, *events, *_end_of(attempts, ledger))
        return decisions


# The event that brings a run to a state. An intent stays until no attempt is under way.
_EVENTS: Mapping[RunState, tuple[RunEvent, ...]] = {
    RunState.RUNNING: (RunEvent.RESTARTED,),
    RunState.RESTARTING: (RunEvent.RESTART,),
    RunState.FINISHED: (RunEvent.RESTARTED, RunEvent.ALL_FINISHED),
    RunState.FAILED: (RunEvent.FAIL,),
    RunState.CANCELED: (RunEvent.CANCEL,),
}


def _state_of(
    task: RegionTask, attempts: Sequence[Attempt], decisions: Mapping[str, RestartDecision], ledger: Ledger
) -> RunState:
    parts = [(region.name, share) for region, share in region_parts(task.pipeline)]
    if task.launcher == "airflow":  # where a resume leaves out the regions that are done
        return run_state_after(parts, attempts, decisions)
    life = {transition.attempt_id for transition in newest_life(ledger.transitions.of_run(task.request.run_id))}
    return run_state_after(parts, [attempt for attempt in attempts if attempt.attempt_id in life], decisions)


def _end_of(attempts: Sequence[Attempt], ledger: Ledger) -> tuple[RunEvent, ...]:
    """The event that all attempts of the run have ended, if none is under way."""
    return () if at_work(attempts, ledger) else (RunEvent.ALL_ENDED,)


def _rules(task: RegionTask, settings: Settings) -> RestartRules:
    return RestartRules(task.pipeline.restart, settings.attempt_retries, task.request.run_id)


def tell(task: RegionTask, ledger: Ledger, kind: str, text: str) -> None:
    ledger.events.append(Event(task.request.run_id, kind, task.subject, text, datetime.now(UTC)))


_ATTRIBUTE = "__stagehold_verdict__"


@dataclass(frozen=True)
class Verdict:
    """An attempt's failure as it was recorded. ``decision`` is None for an attempt that was replaced by a newer one."""

    kind: FailureClass
    rule: str
    decision: RestartDecision | None

    @property
    def restarts_at_once(self) -> bool:
        """Whether another attempt may begin without any delay."""
        return self.decision is not None and self.decision.restart and not self.decision.delay

    def __str__(self) -> str:
        reason = self.decision.reason if self.decision else "a newer attempt goes on"
        return f"{self.kind} failure (rule {self.rule}): {reason}"


def attach(error: BaseException, verdict: Verdict) -> None:
    """Attach the verdict to the error, also as a note, so that it is printed below the error."""
    setattr(error, _ATTRIBUTE, verdict)
    error.add_note(str(verdict))


def verdict_of(error: BaseException) -> Verdict | None:
    """The recorded verdict on the failure. None if nothing was recorded: no attempt had begun, or the ledger was
    away.
    """
    return getattr(error, _ATTRIBUTE, None)
