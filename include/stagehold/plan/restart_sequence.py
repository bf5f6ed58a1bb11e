"""One restart from its beginning to its end, safe when another failure comes in between.

    begin     the versions of the vertices move on, they wait for their restart, the run is RESTARTING; cancel them
    is_due    all of them have ended and the back-off has passed
    complete  those that no later failure took over get a new attempt; when nothing waits any more, the run is RUNNING

Whoever waited checks the version again: if it moved, a later failure owns that vertex.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import ATTEMPT, RunEvent, next_attempt_number, run_after


@dataclass(frozen=True)
class Ticket:
    """One planned restart: the versions its vertices had when it began, and when it may go on."""

    versions: Mapping[str, int]
    due_at: datetime


@dataclass(frozen=True)
class Restarts:
    """All restarts of a run. A vertex that never restarted has version 0.

    :param waiting: vertices that wait for their restart; the run is RESTARTING while there are any.
    """

    versions: Mapping[str, int] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Begun:
    """What to do at the beginning: store ``restarts``, put the run into ``run_state``, cancel the ticket's vertices."""

    restarts: Restarts
    ticket: Ticket
    run_state: RunState


@dataclass(frozen=True)
class Completed:
    """What to do at the end: give each of ``attempts`` the new attempt of that number, restore state, schedule them.

    A failure while state is restored concerns the whole run: answer it with a full failover.
    """

    restarts: Restarts
    attempts: Mapping[str, int]
    run_state: RunState


def begin(restarts: Restarts, vertices: Iterable[str], *, run_state: RunState, now: datetime, delay: timedelta) -> Begun:
    """Take ``vertices`` over from any restart that is under way."""
    moved = {vertex: restarts.versions.get(vertex, 0) + 1 for vertex in vertices}
    after = Restarts({**restarts.versions, **moved}, restarts.waiting | moved.keys())
    return Begun(after, Ticket(moved, now + delay), run_after(run_state, RunEvent.RESTART) if moved else run_state)


def owned(restarts: Restarts, ticket: Ticket) -> tuple[str, ...]:
    """The ticket's vertices that no later failure took over."""
    return tuple(vertex for vertex, version in ticket.versions.items() if restarts.versions[vertex] == version)


def is_due(restarts: Restarts, ticket: Ticket, *, states: Mapping[str, AttemptState], now: datetime) -> bool:
    """Whether the back-off has passed and every attempt that this ticket still owns has ended."""
    return now >= ticket.due_at and all(ATTEMPT.is_terminal(states[vertex]) for vertex in owned(restarts, ticket))


def complete(
    restarts: Restarts, ticket: Ticket, *, run_state: RunState, states: Mapping[str, AttemptState], attempts: Mapping[str, int]
) -> Completed:
    """New attempts for what the ticket still owns; IllegalTransition if one of those has not ended.

    A run that was cancelled or failed meanwhile stays so, and gets no new attempt.
    """
    mine = owned(restarts, ticket)
    after = replace(restarts, waiting=restarts.waiting - set(mine))
    if run_state is not RunState.RESTARTING:
        return Completed(after, {}, run_state)
    numbers = {vertex: next_attempt_number(attempts[vertex], states[vertex]) for vertex in mine}
    return Completed(after, numbers, run_state if after.waiting else run_after(run_state, RunEvent.RESTARTED))
