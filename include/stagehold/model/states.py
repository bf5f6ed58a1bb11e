"""The life of a run and of an attempt: which transitions exist, and what every event does in every state.

Both machines are data. A change is a compare-and-set: who expected another state has lost a race, which is normal and
changes nothing. Only a transition that no table has is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from stagehold.errors import IllegalTransition
from stagehold.model.records import AttemptState, RunState

State = TypeVar("State", bound=StrEnum)


@dataclass(frozen=True)
class Swap(Generic[State]):
    """What a compare-and-set left behind; ``changed`` is False for the one who lost the race."""

    state: State
    changed: bool


@dataclass(frozen=True)
class Machine(Generic[State]):
    """A named table of legal transitions; a state without any is terminal."""

    name: str
    transitions: Mapping[State, Collection[State]]

    def is_terminal(self, state: State) -> bool:
        return not self.transitions[state]

    def swap(self, *, current: State, expected: State, wanted: State) -> Swap[State]:
        """``wanted`` if ``current`` is the ``expected`` state, else ``current`` unchanged.

        Raises IllegalTransition when ``expected`` can never become ``wanted``, so also for leaving a terminal state.
        Whoever stores the state must compare and set in one step of the store; this function only decides.
        """
        allowed = self.transitions[expected]
        if wanted not in allowed:
            raise IllegalTransition(machine=self.name, state=expected, wanted=wanted, allowed=tuple(allowed))
        return Swap(wanted, True) if current == expected else Swap(current, False)


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


def _moves(wanted: AttemptState, *states: AttemptState, effect: Effect = Effect.NONE) -> dict[AttemptState, AttemptStep]:
    return {state: AttemptStep(wanted, effect) for state in states}


_BEFORE_DEPLOYMENT = (_A.CREATED, _A.SCHEDULED)
_DEPLOYED = (_A.DEPLOYING, _A.INITIALIZING, _A.RUNNING)
_CANCELING_ENDS = _moves(_A.CANCELED, _A.CANCELING)

ATTEMPT_EVENTS: Mapping[AttemptEvent, Mapping[AttemptState, AttemptStep]] = {
    AttemptEvent.SCHEDULE: _moves(_A.SCHEDULED, _A.CREATED),
    AttemptEvent.DEPLOY: _moves(_A.DEPLOYING, _A.SCHEDULED),
    # A worker that reports a step out of order is stopped, and its attempt failed; one that is being cancelled is told again.
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
    AttemptEvent.REPORTED_FINISHED: {**_moves(_A.FINISHED, *_DEPLOYED), **_moves(_A.FAILED, *_BEFORE_DEPLOYMENT), **_CANCELING_ENDS},
    AttemptEvent.REPORTED_CANCELED: {
        **_moves(_A.CANCELED, *_DEPLOYED),
        **_CANCELING_ENDS,
        **{state: AttemptStep(state, Effect.GLOBAL_FAILURE) for state in (*_BEFORE_DEPLOYMENT, _A.FINISHED)},
    },
    AttemptEvent.FAIL: {**_moves(_A.FAILED, *_BEFORE_DEPLOYMENT, *_DEPLOYED), **_CANCELING_ENDS},
    AttemptEvent.CANCEL: {**_moves(_A.CANCELED, *_BEFORE_DEPLOYMENT), **_moves(_A.CANCELING, *_DEPLOYED, effect=Effect.SEND_CANCEL)},
}

_OURS_TO_ORDER = {AttemptEvent.SCHEDULE: _A.SCHEDULED, AttemptEvent.DEPLOY: _A.DEPLOYING}


def attempt_after(state: AttemptState, event: AttemptEvent) -> AttemptStep:
    """The attempt's next state and effect; too late an event is IGNORED.

    Raises IllegalTransition only when our own scheduler skips a step: schedules or deploys an attempt that is not waiting for it.
    """
    step = ATTEMPT_EVENTS[event].get(state)
    if step is not None:
        return step
    if event in _OURS_TO_ORDER and state in (*_BEFORE_DEPLOYMENT, *_DEPLOYED):
        raise IllegalTransition(machine="attempt", state=state, wanted=_OURS_TO_ORDER[event], allowed=tuple(ATTEMPT.transitions[state]))
    return AttemptStep(state, Effect.IGNORED)


def next_attempt_number(number: int, state: AttemptState) -> int:
    """The number of the attempt that replaces an ended one; one that has not ended is not replaced."""
    if not ATTEMPT.is_terminal(state):
        raise IllegalTransition(machine="attempt", state=state, wanted="replaced by a new one", allowed=tuple(ATTEMPT.transitions[state]))
    return number + 1


_SHOWN_FIRST = (_A.FAILED, _A.CANCELING, _A.CANCELED, _A.INITIALIZING, _A.RUNNING)


def stage_state(partitions: Collection[AttemptState]) -> AttemptState:
    """One state for a stage, from those of its partitions: the worst first, finished only when all are."""
    present = set(partitions)
    for state in _SHOWN_FIRST:
        if state in present:
            return state
    if AttemptState.FINISHED not in present:
        return AttemptState.CREATED
    return AttemptState.FINISHED if len(present) == 1 else AttemptState.RUNNING
