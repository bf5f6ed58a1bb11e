"""The life of a run and of an attempt: which transitions exist, and what every event does in every state.

Both machines are data. Who stores a state compares and sets it in one step of the store: what an event makes of it is
read from the state at that moment. An event that comes too late has lost a race, which is normal and changes nothing;
only a step that is skipped is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from stagehold.errors import IllegalTransition
from stagehold.model.records import AttemptState, RunState

State = TypeVar("State", bound=StrEnum)
Happening = TypeVar("Happening", bound=StrEnum)


@dataclass(frozen=True)
class Machine(Generic[State]):
    """A named table of legal transitions; a state without any is terminal."""

    name: str
    transitions: Mapping[State, Collection[State]]

    def is_terminal(self, state: State) -> bool:
        return not self.transitions[state]


ENDED_BADLY = (AttemptState.FAILED, AttemptState.CANCELED)
LOST = "lost"  # in place of a state, for people: nobody was there to note the end
_R = RunState
_A = AttemptState

RUN: Machine[RunState] = Machine(
    "run",
    {
        _R.CREATED: (_R.RUNNING, _R.RECONCILING, _R.CANCELLING, _R.FAILING, _R.SUSPENDED),
        _R.RECONCILING: (_R.RUNNING, _R.FAILING, _R.SUSPENDED),
        _R.RUNNING: (_R.FINISHED, _R.RESTARTING, _R.CANCELLING, _R.FAILING, _R.SUSPENDED),
        _R.RESTARTING: (_R.RUNNING, _R.CANCELLING, _R.FAILING, _R.SUSPENDED),
        _R.CANCELLING: (_R.CANCELED, _R.FAILING, _R.FAILED, _R.SUSPENDED),
        _R.FAILING: (_R.FAILED, _R.CANCELLING, _R.SUSPENDED),
        _R.FINISHED: (),
        _R.CANCELED: (),
        _R.FAILED: (),
        _R.SUSPENDED: (),
    },
)

ATTEMPT: Machine[AttemptState] = Machine(
    "attempt",
    {
        _A.CREATED: (_A.SCHEDULED, _A.CANCELED, _A.FAILED),
        _A.SCHEDULED: (_A.DEPLOYING, _A.CANCELED, _A.FAILED),
        _A.DEPLOYING: (_A.INITIALIZING, _A.FINISHED, _A.CANCELING, _A.CANCELED, _A.FAILED),
        _A.INITIALIZING: (_A.RUNNING, _A.FINISHED, _A.CANCELING, _A.CANCELED, _A.FAILED),
        _A.RUNNING: (_A.FINISHED, _A.CANCELING, _A.CANCELED, _A.FAILED),
        _A.CANCELING: (_A.CANCELED,),
        _A.FINISHED: (),
        _A.CANCELED: (),
        _A.FAILED: (),
    },
)

# Suspended ends a run for its coordinator only: another one may take it over, so nothing of it may be deleted.
GLOBALLY_TERMINAL = frozenset({RunState.FINISHED, RunState.CANCELED, RunState.FAILED})


class RunEvent(StrEnum):
    """What can happen to a run."""

    START = "start"
    RECONCILE = "reconcile"  # an event log of an earlier coordinator was found
    RECONCILED = "reconciled"
    RESTART = "restart"  # at least one attempt waits for its restart
    RESTARTED = "restarted"  # no attempt waits any more
    CANCEL = "cancel"
    FAIL = "fail"  # a failure that may not be restarted
    SUSPEND = "suspend"
    ALL_FINISHED = "all_finished"
    ALL_ENDED = "all_ended"  # no attempt is left that is not terminal
    CANCEL_THREW = "cancel_threw"


_LIVE = tuple(state for state in RunState if not RUN.is_terminal(state))

RUN_EVENTS: Mapping[RunEvent, Mapping[RunState, RunState]] = {
    RunEvent.START: {_R.CREATED: _R.RUNNING},
    RunEvent.RECONCILE: {_R.CREATED: _R.RECONCILING},
    RunEvent.RECONCILED: {_R.RECONCILING: _R.RUNNING},
    RunEvent.RESTART: {_R.RUNNING: _R.RESTARTING},
    RunEvent.RESTARTED: {_R.RESTARTING: _R.RUNNING},
    # The last of two intents wins: cancel overtakes failing, and a failure overtakes cancelling.
    RunEvent.CANCEL: {state: _R.CANCELLING for state in (_R.CREATED, _R.RUNNING, _R.RESTARTING, _R.FAILING)},
    RunEvent.FAIL: {state: _R.FAILING for state in _LIVE if state != _R.FAILING},
    RunEvent.SUSPEND: {state: _R.SUSPENDED for state in _LIVE},
    RunEvent.ALL_FINISHED: {_R.RUNNING: _R.FINISHED},
    RunEvent.ALL_ENDED: {_R.CANCELLING: _R.CANCELED, _R.FAILING: _R.FAILED},
    RunEvent.CANCEL_THREW: {_R.CANCELLING: _R.FAILED},
}


def run_after(state: RunState, event: RunEvent) -> RunState:
    """The run's next state; an event that means nothing in this state, or comes too late, leaves it unchanged."""
    return RUN_EVENTS[event].get(state, state)


# What becomes of a run that an earlier coordinator left. A run of ours has none: any process may go on with it.
_OF_COORDINATORS = {RunEvent.RECONCILE: _R.RECONCILING}


def recorded_run_after(state: RunState, event: RunEvent) -> RunState:
    """The next state of a run in the ledger, of which nobody may claim what only a coordinator knows.

    :raises IllegalTransition: the event is a coordinator's.
    """
    if event in _OF_COORDINATORS:
        allowed = tuple(following for following in RUN.transitions[state] if following not in _OF_COORDINATORS.values())
        raise IllegalTransition(machine="run", state=state, wanted=_OF_COORDINATORS[event], allowed=allowed)
    return run_after(state, event)


class AttemptEvent(StrEnum):
    """What can happen to an attempt; those that begin with REPORTED come from the worker and may come late."""

    SCHEDULE = "schedule"
    DEPLOY = "deploy"
    REPORTED_INITIALIZING = "reported_initializing"
    REPORTED_RUNNING = "reported_running"
    REPORTED_FINISHED = "reported_finished"
    REPORTED_CANCELED = "reported_canceled"
    FAIL = "fail"
    CANCEL = "cancel"


class Effect(StrEnum):
    """What has to be done besides changing the state."""

    NONE = "none"
    IGNORED = "ignored"  # too late, or already done
    SEND_CANCEL = "send_cancel"  # the worker still has to be told
    GLOBAL_FAILURE = "global_failure"  # the worker and we disagree; the whole run restarts


@dataclass(frozen=True)
class AttemptStep:
    """The attempt's next state and what has to be done."""

    state: AttemptState
    effect: Effect = Effect.NONE


def _moves(
    wanted: AttemptState, *states: AttemptState, effect: Effect = Effect.NONE
) -> dict[AttemptState, AttemptStep]:
    return {state: AttemptStep(wanted, effect) for state in states}


_BEFORE_DEPLOYMENT = (_A.CREATED, _A.SCHEDULED)
_DEPLOYED = (_A.DEPLOYING, _A.INITIALIZING, _A.RUNNING)
_CANCELING_ENDS = _moves(_A.CANCELED, _A.CANCELING)

ATTEMPT_EVENTS: Mapping[AttemptEvent, Mapping[AttemptState, AttemptStep]] = {
    AttemptEvent.SCHEDULE: _moves(_A.SCHEDULED, _A.CREATED),
    AttemptEvent.DEPLOY: _moves(_A.DEPLOYING, _A.SCHEDULED),
    # A worker that reports a step out of order is stopped, and its attempt failed; one that is being cancelled is told
    # again.
    AttemptEvent.REPORTED_INITIALIZING: {
        **_moves(_A.INITIALIZING, _A.DEPLOYING),
        **_moves(_A.FAILED, *_BEFORE_DEPLOYMENT, _A.INITIALIZING, _A.RUNNING, effect=Effect.SEND_CANCEL),
        **_moves(_A.CANCELING, _A.CANCELING, effect=Effect.SEND_CANCEL),
    },
    AttemptEvent.REPORTED_RUNNING: {
        **_moves(_A.RUNNING, _A.INITIALIZING),
        **_moves(_A.FAILED, *_BEFORE_DEPLOYMENT, _A.DEPLOYING, _A.RUNNING, effect=Effect.SEND_CANCEL),
        **_moves(_A.CANCELING, _A.CANCELING, effect=Effect.SEND_CANCEL),
    },
    AttemptEvent.REPORTED_FINISHED: {
        **_moves(_A.FINISHED, *_DEPLOYED),
        **_moves(_A.FAILED, *_BEFORE_DEPLOYMENT),
        **_CANCELING_ENDS,
    },
    AttemptEvent.REPORTED_CANCELED: {
        **_moves(_A.CANCELED, *_DEPLOYED),
        **_CANCELING_ENDS,
        **{state: AttemptStep(state, Effect.GLOBAL_FAILURE) for state in (*_BEFORE_DEPLOYMENT, _A.FINISHED)},
    },
    AttemptEvent.FAIL: {**_moves(_A.FAILED, *_BEFORE_DEPLOYMENT, *_DEPLOYED), **_CANCELING_ENDS},
    AttemptEvent.CANCEL: {
        **_moves(_A.CANCELED, *_BEFORE_DEPLOYMENT),
        **_moves(_A.CANCELING, *_DEPLOYED, effect=Effect.SEND_CANCEL),
    },
}

# All that happens to an attempt until it computes.
UNTIL_RUNNING = (
    AttemptEvent.SCHEDULE,
    AttemptEvent.DEPLOY,
    AttemptEvent.REPORTED_INITIALIZING,
    AttemptEvent.REPORTED_RUNNING,
)

_OURS_TO_ORDER = {AttemptEvent.SCHEDULE: _A.SCHEDULED, AttemptEvent.DEPLOY: _A.DEPLOYING}


def attempt_after(state: AttemptState, event: AttemptEvent) -> AttemptStep:
    """The attempt's next state and effect; too late an event is IGNORED.

    Raises IllegalTransition only when our own scheduler skips a step: schedules or deploys an attempt that is not
    waiting for it.
    """
    step = ATTEMPT_EVENTS[event].get(state)
    if step is not None:
        return step
    if event in _OURS_TO_ORDER and state in (*_BEFORE_DEPLOYMENT, *_DEPLOYED):
        raise IllegalTransition(
            machine="attempt", state=state, wanted=_OURS_TO_ORDER[event], allowed=tuple(ATTEMPT.transitions[state])
        )
    return AttemptStep(state, Effect.IGNORED)


# Of several states of a stage's partitions the first one is told. What has none of them was not deployed yet.
_TOLD_FIRST = (_A.FAILED, _A.CANCELING, _A.CANCELED, _A.INITIALIZING, _A.RUNNING)


def folded(states: Iterable[AttemptState]) -> AttemptState:
    """One state for a stage, from that of each of its declared partitions, by Flink's rule for a job vertex and its
    tasks: FINISHED only if all are, RUNNING if some are.
    """
    found = set(states)
    if first := next((state for state in _TOLD_FIRST if state in found), None):
        return first
    if _A.FINISHED not in found:
        return _A.CREATED
    return _A.FINISHED if len(found) == 1 else _A.RUNNING


@dataclass(frozen=True)
class Move(Generic[State, Happening]):
    """A change of a state, and what made it."""

    before: State
    event: Happening
    after: State


def moves(
    state: State, events: Iterable[Happening], following: Callable[[State, Happening], State]
) -> tuple[Move[State, Happening], ...]:
    """What the events change one after the other; one that means nothing in its turn changes nothing."""
    made: list[Move[State, Happening]] = []
    for event in events:
        after = following(state, event)
        if after != state:
            made.append(Move(state, event, after))
        state = after
    return tuple(made)


@dataclass(frozen=True)
class Transition:
    """A change in the history of a run or, where ``attempt_id`` names it, of an attempt of the run.

    ``before`` and ``event`` are None where a life begins: there was no state before it.
    """

    run_id: str
    attempt_id: str | None
    before: RunState | AttemptState | None
    after: RunState | AttemptState
    event: RunEvent | AttemptEvent | None
    recorded_at: datetime

    @property
    def begins_life_of_run(self) -> bool:
        return self.attempt_id is None and self.before is None


@dataclass(frozen=True)
class RunStatusChange:
    """What a run has become, for who listens. ``before`` is None where a life of the run begins."""

    run_id: str
    pipeline: str
    interval: str
    before: RunState | None
    after: RunState


@dataclass(frozen=True)
class StageStatusChange:
    """What a stage has become in a run, for who listens."""

    run_id: str
    pipeline: str
    interval: str
    stage: str
    before: AttemptState
    after: AttemptState


def newest_life(history: Sequence[Transition]) -> Sequence[Transition]:
    """The part of a run's history that began when the run was last started anew."""
    begins = [place for place, transition in enumerate(history) if transition.begins_life_of_run]
    return history[begins[-1] :] if begins else history
