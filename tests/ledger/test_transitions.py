"""The history of states, on every back end: what is written with each change, and that nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import attempt, in_process_that_dies, in_processes, run

from stagehold.errors import IllegalTransition
from stagehold.ledger.attempts import Failure
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent, RunEvent

A = attempt().attempt_id


def history(ledger, run_id="run-1"):
    """Lines like `run: created -start-> running`."""
    return [
        f"{transition.attempt_id or 'run'}: {transition.before} -{transition.event}-> {transition.after}"
        for transition in ledger.transitions.of_run(run_id)
    ]


def test_a_run_and_its_attempt_have_one_history(ledger):
    ledger.runs.create(run())
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(A, AttemptEvent.REPORTED_FINISHED)
    ledger.runs.apply("run-1", RunEvent.ALL_FINISHED)
    ledger.runs.start(run("run-2"))
    assert history(ledger) == [
        "run: None -None-> created",
        "run: created -start-> running",
        f"{A}: None -None-> created",
        f"{A}: created -schedule-> scheduled",
        f"{A}: scheduled -deploy-> deploying",
        f"{A}: deploying -reported_initializing-> initializing",
        f"{A}: initializing -reported_running-> running",
        f"{A}: running -reported_finished-> finished",
        "run: running -all_finished-> finished",
    ]


def test_words_and_times_come_back_as_they_are_meant(ledger):
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), AttemptEvent.SCHEDULE)
    first, started, _, scheduled = ledger.transitions.of_run("run-1")
    assert (first.before, first.event, first.begins_life_of_run) == (None, None, True)
    assert (type(started.after), type(started.event)) == (RunState, RunEvent)
    assert (type(scheduled.after), type(scheduled.event)) == (AttemptState, AttemptEvent)
    assert first.recorded_at <= started.recorded_at <= scheduled.recorded_at
    assert datetime.now(UTC) - timedelta(minutes=1) < started.recorded_at < datetime.now(UTC) + timedelta(minutes=1)


def test_an_event_that_means_nothing_leaves_no_trace(ledger):
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(A, AttemptEvent.FAIL)
    before = history(ledger)
    assert ledger.attempts.apply(A, AttemptEvent.REPORTED_FINISHED) is False
    assert ledger.runs.apply("run-1", RunEvent.RESTARTED, RunEvent.ALL_ENDED) is False
    ledger.runs.begin_life("run-1")
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), AttemptEvent.FAIL)
    assert history(ledger) == before


@pytest.mark.parametrize("state", [None, "running"])
def test_what_is_refused_leaves_no_trace_not_even_of_what_came_before_it(ledger, state):
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *(UNTIL_RUNNING if state else ()))
    before = history(ledger)
    with pytest.raises(IllegalTransition):
        ledger.runs.apply("run-1", RunEvent.RESTART, RunEvent.RECONCILE)
    with pytest.raises(IllegalTransition):
        ledger.attempts.apply(A, AttemptEvent.DEPLOY)
    assert history(ledger) == before
    assert ledger.runs.get("run-1").state is RunState.RUNNING


def test_states_that_are_passed_at_once_are_both_in_the_history(ledger):
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    cancel = (AttemptEvent.CANCEL, AttemptEvent.REPORTED_CANCELED)
    ledger.attempts.apply(A, *cancel, failure=Failure("cancelled by the user"))
    ledger.runs.apply("run-1", RunEvent.CANCEL, RunEvent.ALL_ENDED)
    assert history(ledger)[-4:] == [
        f"{A}: running -cancel-> canceling",
        f"{A}: canceling -reported_canceled-> canceled",
        "run: running -cancel-> cancelling",
        "run: cancelling -all_ended-> canceled",
    ]


def test_of_many_who_end_a_run_at_once_one_does_and_the_history_is_one_chain(ledger):
    ledger.runs.start(run())
    intents = (RunEvent.FAIL, RunEvent.CANCEL)
    ended = in_processes(8, lambda number: ledger.runs.apply("run-1", intents[number % 2], RunEvent.ALL_ENDED))
    assert ended.count(True) == 1
    told = ledger.transitions.of_run("run-1")
    assert [one.after for one in told[:-1]] == [one.before for one in told[1:]]
    assert told[-1].after == ledger.runs.get("run-1").state


def test_of_many_who_end_an_attempt_at_once_one_does(ledger):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    events = (AttemptEvent.FAIL, AttemptEvent.REPORTED_FINISHED)
    ended = in_processes(8, lambda number: ledger.attempts.apply(A, events[number % 2]))
    assert ended.count(True) == 1
    assert len(history(ledger)) == len(UNTIL_RUNNING) + 2


def test_many_who_start_a_run_at_once_write_one_beginning(ledger):
    in_processes(8, lambda number: ledger.runs.start(run(minutes=number)))
    assert history(ledger) == ["run: None -None-> created", "run: created -start-> running"]


def test_a_process_that_dies_within_a_transaction_changes_neither_state_nor_history(ledger):
    ledger.runs.start(run())
    before = history(ledger)

    def die_half_way():
        with ledger.together():
            ledger.runs.apply("run-1", RunEvent.FAIL)
            raise SystemExit

    in_process_that_dies(die_half_way)
    assert (ledger.runs.get("run-1").state, history(ledger)) == (RunState.RUNNING, before)
