"""Two `stagehold run` of one interval at once: one works, the other waits for it and takes what it made."""

from __future__ import annotations

import signal

import pytest
from tests.run.busy import BusyJob, until
from tests.run.workbench import INTERVAL, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, RunState

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def begin(bench, run_id):
    return bench.command("run", "toy", "--interval", INTERVAL, "--run-id", run_id, "--json")


def begin_waiting(bench, run_id):
    run = begin(bench, run_id)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        until(lambda: [event.kind for event in ledger.events.of_run(run_id)] == ["waiting"], 60)
    return run


@pytest.fixture
def two_runs(bench, tmp_path):
    """The first one works, the second one waits for it."""
    busy = BusyJob.put_into(bench, tmp_path)
    first = begin(bench, "r1")
    until(busy.works, 60)
    return busy, first, begin_waiting(bench, "r2")


def states(bench, run_id):
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.runs.get(run_id).state, {attempt.state for attempt in ledger.attempts.of_run(run_id)}


def test_the_second_waits_for_the_first_and_reuses_all_that_it_makes(bench, two_runs):
    busy, first, second = two_runs
    busy.let_go()
    winner, loser = ended(first), ended(second)
    assert winner.result["computed"] + loser.result["computed"] == 13
    assert "numbers waits for cli/r1/numbers (process " in loser.err
    for run_id in ("r1", "r2"):
        assert states(bench, run_id) == (RunState.FINISHED, {AttemptState.FINISHED})
    assert bench.published() == bench.expected()


def test_another_works_itself_when_the_one_it_waits_for_is_cancelled_or_killed(bench, two_runs):
    busy, first, second = two_runs
    third = begin_waiting(bench, "r3")
    first.send_signal(signal.SIGTERM)
    second.send_signal(signal.SIGKILL)
    assert (ended(first).code, killed(ended(second))) == (130, True)
    busy.let_go()
    assert ended(third).counts == (0, 13)
    assert (states(bench, "r1")[0], states(bench, "r3")[0]) == (RunState.CANCELED, RunState.FINISHED)


def test_a_run_that_is_cancelled_while_it_waits_is_cancelled(bench, two_runs):
    busy, first, second = two_runs
    second.send_signal(signal.SIGTERM)
    assert ended(second).code == 130
    assert states(bench, "r2") == (RunState.CANCELED, {AttemptState.CANCELED})
    busy.let_go()
    assert ended(first).code == 0
