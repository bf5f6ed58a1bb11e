"""Cancelling `stagehold run` in the middle of a long Spark stage: how soon the work stops, and what is left."""

from __future__ import annotations

import signal
import time

import pytest
from tests.run.busy import BusyJob, until
from tests.run.workbench import Workbench, ended

from stagehold.errors import SessionClosed
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, RunState
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.session.sessions import open_session, session_id

pytestmark = pytest.mark.spark

SECONDS = 5.0


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def test_a_run_that_takes_longer_than_its_time_out_is_cancelled_and_can_be_resumed(bench, tmp_path):
    busy = BusyJob.put_into(bench, tmp_path)
    bench.declare("run_timeout: 6s")
    late = bench.run("--run-id", "r1")
    assert (late.code, "r1 took longer than its run_timeout (0:00:06) and was cancelled" in late.err) == (124, True)
    until(lambda: time.time() - busy.worked_last() > 1, SECONDS)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
        assert (attempt.state, ledger.runs.get("r1").state) == (AttemptState.CANCELED, RunState.CANCELED)
    busy.let_go()
    bench.declare("run_timeout: 1h")
    assert bench.run("--run-id", "r1").counts == (0, 13)
    assert bench.published() == bench.expected()


def test_a_run_that_is_cancelled_while_it_waits_to_restart_is_cancelled(bench):
    bench.declare("restart: {strategy: fixed-delay, attempts: 1, delay: 1h}")
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.RAISE)
    waiting = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r1")
    with Ledger.open(bench.settings.ledger_url) as ledger:
        until(lambda: [run.state for run in ledger.runs.recent(1)] == [RunState.RESTARTING], 60)
    waiting.send_signal(signal.SIGTERM)  # a shell that starts tests in the background has SIGINT ignored
    assert ended(waiting).code == 130
    with Ledger.open(bench.settings.ledger_url) as ledger:
        told = [
            str(transition.after) for transition in ledger.transitions.of_run("r1") if transition.attempt_id is None
        ]
        assert told == ["created", "running", "restarting", "cancelling", "canceled"]
        assert [attempt.state for attempt in ledger.attempts.of_run("r1")][-1] is AttemptState.FAILED


@pytest.mark.parametrize("point", [Point.AFTER_MEASURE, Point.BEFORE_PUBLISH, Point.AFTER_RECORD])
def test_a_run_that_is_cancelled_while_a_wave_is_finished_beside_it_does_not_wait_for_that(point, bench):
    bench.inject(point, "by_wave", 2, FaultAction.HANG)
    running = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r1")
    until(lambda: not any((bench.settings.home_path / "faults").iterdir()), 60)
    asked = time.time()
    running.send_signal(signal.SIGTERM)
    stopped = ended(running)
    assert time.time() - asked < SECONDS
    assert (stopped.code, "was cancelled" in stopped.err, "Traceback" in stopped.err) == (130, True, False)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        assert {attempt.state for attempt in ledger.attempts.of_run("r1")} == {
            AttemptState.FINISHED,
            AttemptState.CANCELED,
        }
    recorded = len(bench.records("by_wave"))
    resumed = bench.run("--run-id", "r1")
    assert resumed.counts[0] >= recorded
    assert bench.published() == bench.expected()


@pytest.mark.parametrize("how", ["signal", "command"])
def test_spark_work_stops_within_seconds_and_the_run_can_be_resumed(how, bench, tmp_path):
    """By SIGTERM, which is handled as Ctrl-C is, or by `stagehold cancel` from elsewhere."""
    busy = BusyJob.put_into(bench, tmp_path)
    running = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r1")
    until(busy.works, 60)
    asked = time.time()
    if how == "command":
        cancelled = ended(bench.command("cancel", "r1"))
        assert (cancelled.code, "numbers is being interrupted" in cancelled.err) == (0, True)
        assert "r1 is canceled. What is consumable is kept; `stagehold resume r1` goes on" in cancelled.out
    else:
        running.send_signal(signal.SIGTERM)
    stopped = ended(running)
    assert time.time() - asked < SECONDS
    assert (stopped.code, "was cancelled" in stopped.err) == (130, True)
    until(lambda: time.time() - busy.worked_last() > 1, SECONDS)
    assert busy.worked_last() - asked < SECONDS
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("r1")
        assert (attempt.state, ledger.runs.get("r1").state) == (AttemptState.CANCELED, RunState.CANCELED)
    with pytest.raises(SessionClosed):
        open_session(bench.settings, session_id(bench.settings, attempt.attempt_id), wait_seconds=0)
    assert bench.records("numbers") == ()
    busy.let_go()
    assert bench.run("--run-id", "r1").counts == (0, 13)
    assert bench.published() == bench.expected()
