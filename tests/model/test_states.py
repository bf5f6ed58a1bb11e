from __future__ import annotations

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
    RunEvent,
    attempt_after,
    next_attempt_number,
    run_after,
    stage_state,
)

# Columns are events, rows are states; "-" means the event changes nothing.
RUN_TABLE = """
            start    reconcile   reconciled restart    restarted cancel     fail    suspend   all_finished all_ended cancel_threw
created     running  reconciling -          -          -         cancelling failing suspended -            -         -
reconciling -        -           running    -          -         -          failing suspended -            -         -
running     -        -           -          restarting -         cancelling failing suspended finished     -         -
restarting  -        -           -          -          running   cancelling failing suspended -            -         -
cancelling  -        -           -          -          -         -          failing suspended -            canceled  failed
failing     -        -           -          -          -         cancelling -       suspended -            failed    -
finished    -        -           -          -          -         -          -       -         -            -         -
canceled    -        -           -          -          -         -          -       -         -            -         -
failed      -        -           -          -          -         -          -       -         -            -         -
suspended   -        -           -          -          -         -          -       -         -            -         -
"""

# "!" sends a cancel to the worker, "*" is a global failure, "error" is our own scheduler's mistake.
ATTEMPT_TABLE = """
             schedule  deploy    reported_initializing reported_running reported_finished reported_canceled fail     cancel
created      scheduled error     failed!               failed!          failed            created*          failed   canceled
scheduled    error     deploying failed!               failed!          failed            scheduled*        failed   canceled
deploying    error     error     initializing          failed!          finished          canceled          failed   canceling!
initializing error     error     failed!               running          finished          canceled          failed   canceling!
running      error     error     failed!               failed!          finished          canceled          failed   canceling!
canceling    -         -         canceling!            canceling!       canceled          canceled          canceled -
finished     -         -         -                     -                -                 finished*         -        -
canceled     -         -         -                     -                -                 -                 -        -
failed       -         -         -                     -                -                 -                 -        -
"""


def cells(table):
    header, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], event, cell) for row in rows for event, cell in zip(header, row[1:], strict=True)]


def attempt_step(state, cell):
    if cell == "-":
        return AttemptStep(AttemptState(state), Effect.IGNORED)
    effect = {"!": Effect.SEND_CANCEL, "*": Effect.GLOBAL_FAILURE}.get(cell[-1], Effect.NONE)
    return AttemptStep(AttemptState(cell.rstrip("!*")), effect)


def test_the_tables_name_every_event_in_every_state():
    assert {cell[:2] for cell in cells(RUN_TABLE)} == {(state, event) for state in RunState for event in RunEvent}
    assert {cell[:2] for cell in cells(ATTEMPT_TABLE)} == {(state, event) for state in AttemptState for event in AttemptEvent}


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


@pytest.mark.parametrize(("machine", "states", "table"), [(RUN, RunState, RUN_TABLE), (ATTEMPT, AttemptState, ATTEMPT_TABLE)])
def test_a_transition_is_legal_exactly_if_some_event_makes_it(machine, states, table):
    made = {(state, cell.rstrip("!*")) for state, _, cell in cells(table) if cell not in ("-", "error")}
    legal = {(state, wanted) for state in states for wanted in machine.transitions[state]}
    assert legal == {(state, wanted) for state, wanted in made if state != wanted}


@pytest.mark.parametrize(("machine", "states"), [(RUN, RunState), (ATTEMPT, AttemptState)])
def test_every_pair_of_states_swaps_or_loses_the_race_or_is_illegal(machine, states):
    for expected in states:
        for wanted in states:
            for current in states:
                if wanted not in machine.transitions[expected]:
                    with pytest.raises(IllegalTransition):
                        machine.swap(current=current, expected=expected, wanted=wanted)
                    continue
                swap = machine.swap(current=current, expected=expected, wanted=wanted)
                assert (swap.state, swap.changed) == ((wanted, True) if current == expected else (current, False))


def test_leaving_a_terminal_state_says_that_it_has_ended():
    with pytest.raises(IllegalTransition, match="nothing, it has ended"):
        RUN.swap(current=RunState.FINISHED, expected=RunState.FINISHED, wanted=RunState.RUNNING)


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


@pytest.mark.parametrize("state", list(AttemptState))
def test_only_an_ended_attempt_is_replaced(state):
    if ATTEMPT.is_terminal(state):
        assert next_attempt_number(3, state) == 4
    else:
        with pytest.raises(IllegalTransition):
            next_attempt_number(3, state)


@pytest.mark.parametrize(
    ("partitions", "shown"),
    [
        ("finished failed canceling", "failed"),
        ("finished canceling canceled", "canceling"),
        ("running canceled", "canceled"),
        ("running initializing", "initializing"),
        ("running finished created", "running"),
        ("finished finished", "finished"),
        ("finished created", "running"),
        ("finished deploying", "running"),
        ("scheduled deploying", "created"),
        ("", "created"),
    ],
)
def test_a_stage_shows_the_worst_of_its_partitions(partitions, shown):
    assert stage_state([AttemptState(state) for state in partitions.split()]) == AttemptState(shown)
