from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product

import pytest

from stagehold.errors import IllegalTransition
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import (
    ATTEMPT,
    GLOBALLY_TERMINAL,
    RUN,
    AttemptEvent,
    AttemptStep,
    Effect,
    Move,
    RunEvent,
    Transition,
    attempt_after,
    folded,
    moves,
    newest_life,
    recorded_run_after,
    run_after,
)

# Columns are events, in two parts, rows are states; "-" means the event changes nothing.
RUN_TABLE = """
            start    reconcile   reconciled restart    restarted
created     running  reconciling -          -          -
reconciling -        -           running    -          -
running     -        -           -          restarting -
restarting  -        -           -          -          running
cancelling  -        -           -          -          -
failing     -        -           -          -          -
finished    -        -           -          -          -
canceled    -        -           -          -          -
failed      -        -           -          -          -
suspended   -        -           -          -          -

            cancel     fail    suspend   all_finished all_ended cancel_threw
created     cancelling failing suspended -            -         -
reconciling -          failing suspended -            -         -
running     cancelling failing suspended finished     -         -
restarting  cancelling failing suspended -            -         -
cancelling  -          failing suspended -            canceled  failed
failing     cancelling -       suspended -            failed    -
finished    -          -       -         -            -         -
canceled    -          -       -         -            -         -
failed      -          -       -         -            -         -
suspended   -          -       -         -            -         -
"""

# "!" sends a cancel to the worker, "*" is a global failure, "error" is our own scheduler's mistake.
ATTEMPT_TABLE = """
             schedule  deploy    reported_initializing
created      scheduled error     failed!
scheduled    error     deploying failed!
deploying    error     error     initializing
initializing error     error     failed!
running      error     error     failed!
canceling    -         -         canceling!
finished     -         -         -
canceled     -         -         -
failed       -         -         -

             reported_running reported_finished reported_canceled fail     cancel
created      failed!          failed            created*          failed   canceled
scheduled    failed!          failed            scheduled*        failed   canceled
deploying    failed!          finished          canceled          failed   canceling!
initializing running          finished          canceled          failed   canceling!
running      failed!          finished          canceled          failed   canceling!
canceling    canceling!       canceled          canceled          canceled -
finished     -                -                 finished*         -        -
canceled     -                -                 -                 -        -
failed       -                -                 -                 -        -
"""


def cells(table):
    return [cell for part in table.split("\n\n") for cell in cells_of_part(part)]


def cells_of_part(part):
    header, *rows = [line.split() for line in part.strip().splitlines()]
    return [(row[0], event, cell) for row in rows for event, cell in zip(header, row[1:], strict=True)]


def attempt_step(state, cell):
    if cell == "-":
        return AttemptStep(AttemptState(state), Effect.IGNORED)
    effect = {"!": Effect.SEND_CANCEL, "*": Effect.GLOBAL_FAILURE}.get(cell[-1], Effect.NONE)
    return AttemptStep(AttemptState(cell.rstrip("!*")), effect)


def test_the_tables_name_every_event_in_every_state():
    assert {cell[:2] for cell in cells(RUN_TABLE)} == {(state, event) for state in RunState for event in RunEvent}
    assert {cell[:2] for cell in cells(ATTEMPT_TABLE)} == {
        (state, event) for state in AttemptState for event in AttemptEvent
    }


@pytest.mark.parametrize(("state", "event", "cell"), cells(RUN_TABLE))
def test_every_event_in_every_state_of_a_run(state, event, cell):
    assert run_after(RunState(state), RunEvent(event)) == RunState(state if cell == "-" else cell)


@pytest.mark.parametrize(("state", "event", "cell"), cells(ATTEMPT_TABLE))
def test_every_event_in_every_state_of_an_attempt(state, event, cell):
    if cell == "error":
        with pytest.raises(IllegalTransition):
            attempt_after(AttemptState(state), AttemptEvent(event))
    else:
        assert attempt_after(AttemptState(state), AttemptEvent(event)) == attempt_step(state, cell)


@pytest.mark.parametrize(
    ("machine", "states", "table"), [(RUN, RunState, RUN_TABLE), (ATTEMPT, AttemptState, ATTEMPT_TABLE)]
)
def test_a_transition_is_legal_exactly_if_some_event_makes_it(machine, states, table):
    made = {(state, cell.rstrip("!*")) for state, _, cell in cells(table) if cell not in ("-", "error")}
    legal = {(state, wanted) for state in states for wanted in machine.transitions[state]}
    assert legal == {(state, wanted) for state, wanted in made if state != wanted}


@pytest.mark.parametrize(("state", "event", "cell"), cells(RUN_TABLE))
def test_a_recorded_run_has_no_coordinator_that_could_find_it(state, event, cell):
    if event == "reconcile":
        with pytest.raises(IllegalTransition, match=f"A run that is {state} cannot become") as refused:
            recorded_run_after(RunState(state), RunEvent(event))
        assert RunState.RECONCILING not in refused.value.allowed
    else:
        assert recorded_run_after(RunState(state), RunEvent(event)) == RunState(state if cell == "-" else cell)


def test_a_run_that_has_ended_may_become_nothing_else():
    with pytest.raises(IllegalTransition, match="nothing, it has ended"):
        recorded_run_after(RunState.FINISHED, RunEvent.RECONCILE)


def test_moves_are_the_changes_alone():
    events = [RunEvent.RESTARTED, RunEvent.START, RunEvent.START, RunEvent.FAIL, RunEvent.ALL_ENDED, RunEvent.CANCEL]
    assert moves(RunState.CREATED, events, run_after) == (
        Move(RunState.CREATED, RunEvent.START, RunState.RUNNING),
        Move(RunState.RUNNING, RunEvent.FAIL, RunState.FAILING),
        Move(RunState.FAILING, RunEvent.ALL_ENDED, RunState.FAILED),
    )
    assert moves(RunState.FAILED, events, run_after) == ()


@pytest.mark.parametrize(
    ("history", "newest"),
    [
        ("", ""),
        ("running", "running"),
        ("created a running", "created a running"),
        ("created failed created a", "created a"),
    ],
)
def test_the_newest_life_of_a_run_begins_where_it_was_created_last(history, newest):
    """Of attempts, which are called by one letter, none begins a life of the run."""
    known = {word: told(word) for word in history.split()}
    assert newest_life([known[word] for word in history.split()]) == [known[word] for word in newest.split()]


def told(word):
    if len(word) == 1:
        return Transition("r", word, None, AttemptState.CREATED, None, datetime.now(UTC))
    state = RunState(word)
    before = None if state is RunState.CREATED else RunState.CREATED
    return Transition("r", None, before, state, before and RunEvent.START, datetime.now(UTC))


def test_suspended_ends_the_run_for_this_coordinator_only():
    assert {state for state in RunState if RUN.is_terminal(state)} == GLOBALLY_TERMINAL | {RunState.SUSPENDED}


@pytest.mark.parametrize(
    ("events", "end"),
    [
        (["start", "cancel", "fail", "all_ended"], "failed"),
        (["start", "fail", "cancel", "all_ended"], "canceled"),
        (["start", "cancel", "cancel_threw"], "failed"),
        (["start", "restart", "cancel", "restarted", "all_ended"], "canceled"),
        (["start", "restart", "restarted", "all_finished", "fail"], "finished"),
        (["reconcile", "cancel", "reconciled", "all_finished"], "finished"),
    ],
)
def test_the_last_of_two_intents_wins(events, end):
    state = RunState.CREATED
    for event in events:
        state = run_after(state, RunEvent(event))
    assert state == RunState(end)


def job_vertex_state(states: Sequence[AttemptState]) -> AttemptState:
    """Flink's rule, read from the source of its ExecutionJobVertex: counts by state, and the parallelism."""
    count = states.count
    for worst in (AttemptState.FAILED, AttemptState.CANCELING, AttemptState.CANCELED):
        if count(worst) > 0:
            return worst
    for working in (AttemptState.INITIALIZING, AttemptState.RUNNING):
        if count(working) > 0:
            return working
    if count(AttemptState.FINISHED) > 0:
        return AttemptState.FINISHED if count(AttemptState.FINISHED) == len(states) else AttemptState.RUNNING
    return AttemptState.CREATED


@pytest.mark.parametrize(
    ("states", "one"),
    [
        ("created created", "created"),
        ("created scheduled deploying", "created"),
        ("scheduled running", "running"),
        ("running initializing", "initializing"),
        ("finished created", "running"),
        ("finished deploying", "running"),
        ("finished finished", "finished"),
        ("finished running", "running"),
        ("finished canceled", "canceled"),
        ("canceled canceling", "canceling"),
        ("canceling failed", "failed"),
        ("finished running failed", "failed"),
    ],
)
def test_the_state_of_a_stage_is_folded_from_those_of_its_partitions(states, one):
    assert folded([AttemptState(word) for word in states.split()]) is AttemptState(one)


def test_each_three_states_are_folded_as_flink_folds_those_of_a_job_vertex():
    for states in product(AttemptState, repeat=3):
        assert folded(states) is job_vertex_state(states), states
