from __future__ import annotations

import pytest
from tests.ledger.samples import RUN_ENDS, in_processes, run

from stagehold.errors import IllegalTransition, RunIdTaken, UnknownName
from stagehold.model.records import RunState
from stagehold.model.states import RunEvent


def test_a_run_comes_back_as_it_was_started(ledger):
    started = run(params={"limit": 10})
    assert ledger.runs.start(started) == started
    assert ledger.runs.get("run-1") == started


@pytest.mark.parametrize("ending", [RunState.FINISHED, RunState.FAILED, RunState.CANCELED])
def test_an_ended_run_keeps_its_end_until_it_is_started_again(ledger, ending):
    first = ledger.runs.start(run())
    assert ledger.runs.apply("run-1", *RUN_ENDS[ending]) is True
    ended = ledger.runs.get("run-1")
    assert (ended.state, ended.ended_at is None) == (ending, False)
    assert ended.ended_at.utcoffset().total_seconds() == 0
    assert ledger.runs.apply("run-1", *RUN_ENDS[RunState.FAILED]) is False
    assert ledger.runs.create(run()) == ended
    assert ledger.runs.start(run(minutes=5)) == first


def test_many_tasks_of_a_run_may_start_it_at_once(ledger):
    results = in_processes(8, lambda number: ledger.runs.start(run(minutes=number)))
    assert len({str(result) for result in results}) == 1
    assert ledger.runs.recent(10) == (results[0],)


def test_a_run_id_cannot_name_the_run_of_another_pipeline_or_interval(ledger):
    ledger.runs.start(run())
    for other in (run(pipeline="costs"), run(interval="2024-01-02")):
        with pytest.raises(RunIdTaken, match="belongs to sales 2024-01-01"):
            ledger.runs.start(other)
    assert ledger.runs.get("run-1") == run()


def test_a_run_that_is_asked_for_is_created_and_started_later(ledger):
    assert ledger.runs.create(run()).state is RunState.CREATED
    assert ledger.runs.create(run(minutes=5)) == ledger.runs.get("run-1")
    assert ledger.runs.start(run(minutes=9)) == run()


@pytest.mark.parametrize("state", [RunState.FAILING, RunState.CANCELLING, *map(RunState, ("failed", "finished"))])
def test_a_run_that_has_ended_or_is_about_to_may_begin_a_new_life(ledger, state):
    ledger.runs.start(run())
    ledger.runs.apply("run-1", *RUN_ENDS[state])
    ledger.runs.begin_life("run-1")
    created = ledger.runs.get("run-1")
    assert (created.state, created.ended_at) == (RunState.CREATED, None)
    ledger.runs.begin_life("run-1")
    assert ledger.runs.start(run()) == run()
    assert sum(transition.begins_life_of_run for transition in ledger.transitions.of_run("run-1")) == 2


def test_nobody_may_claim_what_only_a_coordinator_knows(ledger):
    ledger.runs.start(run())
    with pytest.raises(IllegalTransition, match="A run that is running cannot become") as refused:
        ledger.runs.apply("run-1", RunEvent.RECONCILE)
    assert RunState.RECONCILING not in refused.value.allowed
    assert ledger.runs.get("run-1") == run()


def test_a_suspended_run_stays_so_whatever_its_attempts_do_until_somebody_lifts_that(ledger):
    ledger.runs.start(run())
    assert ledger.runs.apply("run-1", RunEvent.SUSPEND) is True
    suspended = ledger.runs.get("run-1")
    assert suspended.state is RunState.SUSPENDED
    assert suspended.ended_at is not None
    assert ledger.runs.apply("run-1", RunEvent.FAIL, RunEvent.CANCEL, RunEvent.ALL_ENDED) is False
    ledger.runs.lift_suspension("run-1")
    assert ledger.runs.get("run-1").state is RunState.CREATED
    assert sum(transition.begins_life_of_run for transition in ledger.transitions.of_run("run-1")) == 2


def test_only_a_suspension_can_be_lifted(ledger):
    ledger.runs.start(run())
    ledger.runs.lift_suspension("run-1")
    ledger.runs.lift_suspension("nobody")
    assert ledger.runs.get("run-1") == run()


def test_a_run_waits_for_a_restart_until_nothing_of_it_does(ledger):
    ledger.runs.start(run())
    for changed in (True, False):
        assert ledger.runs.apply("run-1", RunEvent.RESTART) is changed
        assert ledger.runs.start(run()).state is RunState.RESTARTING
    assert ledger.runs.apply("run-1", RunEvent.RESTARTED) is True
    assert ledger.runs.apply("run-1", *RUN_ENDS[RunState.FAILED]) is True
    assert ledger.runs.apply("run-1", RunEvent.RESTART) is False
    assert ledger.runs.get("run-1").state is RunState.FAILED


def test_an_unknown_run_is_named_with_those_that_exist(ledger):
    ledger.runs.start(run())
    for ask in (ledger.runs.get, lambda run_id: ledger.runs.apply(run_id, RunEvent.FAIL)):
        with pytest.raises(UnknownName, match=r"no run 'run-2'. Known: run-1"):
            ask("run-2")


def test_recent_runs_are_newest_first(ledger):
    for number, (pipeline, interval) in enumerate([("sales", "1"), ("costs", "1"), ("sales", "2"), ("sales", "1")]):
        ledger.runs.start(run(f"run-{number}", pipeline=pipeline, interval=interval, minutes=number))
    assert [found.run_id for found in ledger.runs.recent(2)] == ["run-3", "run-2"]
    assert [found.run_id for found in ledger.runs.recent(9, "sales")] == ["run-3", "run-2", "run-0"]
    assert ledger.runs.newest("sales").run_id == "run-3"
    assert ledger.runs.newest("sales", "2").run_id == "run-2"
    assert ledger.runs.newest("sales", "3") is None
