from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.errors import IllegalTransition
from stagehold.model.records import AttemptState, RunState
from stagehold.plan.restart_sequence import Restarts, begin, complete, is_due, owned

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RUNNING, RESTARTING = RunState.RUNNING, RunState.RESTARTING
ENDED = dict.fromkeys("abc", AttemptState.CANCELED)
FIRST = dict.fromkeys("abc", 1)


def begun(restarts, vertices, run_state=RUNNING):
    return begin(restarts, vertices, run_state=run_state, now=START, delay=2 * SECOND)


def completed(restarts, ticket, run_state=RESTARTING, states=ENDED):
    return complete(restarts, ticket, run_state=run_state, states=states, attempts=FIRST)


def test_a_restart_from_its_beginning_to_its_end():
    started = begun(Restarts(), "ab")
    assert started.run_state is RESTARTING
    assert started.restarts == Restarts({"a": 1, "b": 1}, frozenset("ab"))
    assert started.ticket.due_at == START + 2 * SECOND
    done = completed(started.restarts, started.ticket)
    assert done.attempts == {"a": 2, "b": 2}
    assert done.run_state is RUNNING
    assert done.restarts == Restarts({"a": 1, "b": 1})


@pytest.mark.parametrize(
    ("seconds", "states", "due"),
    [
        (1, ENDED, False),
        (2, ENDED, True),
        (9, {**ENDED, "b": AttemptState.CANCELING}, False),
        (9, {**ENDED, "c": AttemptState.RUNNING}, True),
    ],
)
def test_it_goes_on_when_all_have_ended_and_the_back_off_has_passed(seconds, states, due):
    started = begun(Restarts(), "ab")
    assert is_due(started.restarts, started.ticket, states=states, now=START + seconds * SECOND) is due


def test_a_later_failure_owns_what_it_shares_with_an_earlier_one():
    first = begun(Restarts(), "ab")
    second = begun(first.restarts, "bc", first.run_state)
    assert owned(second.restarts, first.ticket) == ("a",)
    early = completed(second.restarts, first.ticket)
    assert early.attempts == {"a": 2}
    assert early.run_state is RESTARTING
    late = completed(early.restarts, second.ticket)
    assert late.attempts == {"b": 2, "c": 2}
    assert late.run_state is RUNNING


def test_a_ticket_that_owns_nothing_any_more_does_nothing():
    first = begun(Restarts(), "a")
    second = begun(first.restarts, "a", first.run_state)
    assert is_due(second.restarts, first.ticket, states={}, now=START + 9 * SECOND)
    assert completed(second.restarts, first.ticket).attempts == {}
    assert completed(second.restarts, first.ticket).run_state is RESTARTING


def test_a_restart_of_nothing_leaves_the_run_running():
    assert begun(Restarts(), "").run_state is RUNNING


@pytest.mark.parametrize("run_state", [RunState.CANCELLING, RunState.FAILING, RunState.SUSPENDED])
def test_a_run_that_was_ended_meanwhile_gets_no_new_attempt(run_state):
    started = begun(Restarts(), "a")
    done = completed(started.restarts, started.ticket, run_state)
    assert (done.attempts, done.run_state, done.restarts.waiting) == ({}, run_state, frozenset())


def test_an_attempt_that_has_not_ended_is_not_replaced():
    started = begun(Restarts(), "a")
    with pytest.raises(IllegalTransition):
        completed(started.restarts, started.ticket, states={"a": AttemptState.RUNNING})


@given(st.lists(st.sets(st.sampled_from("abcd")), max_size=6), st.randoms(use_true_random=False))
def test_overlapping_restarts_give_every_vertex_one_new_attempt_and_end_running(failures, chance):
    restarts, run_state, tickets = Restarts(), RUNNING, []
    for vertices in failures:
        started = begun(restarts, sorted(vertices), run_state)
        restarts, run_state = started.restarts, started.run_state
        tickets.append(started.ticket)
    chance.shuffle(tickets)
    restarted = []
    for ticket in tickets:
        states = dict.fromkeys("abcd", AttemptState.FAILED)
        done = complete(restarts, ticket, run_state=run_state, states=states, attempts=dict.fromkeys("abcd", 1))
        restarts, run_state = done.restarts, done.run_state
        restarted.extend(done.attempts)
    assert sorted(restarted) == sorted(set().union(*failures))
    assert (run_state, restarts.waiting) == (RUNNING, frozenset())
