"""Runs that are stopped by hand, on a real Airflow with a real Spark: behind a wave, and at once."""

from __future__ import annotations

import json

import pytest
from tests.e2e.stack import Stack, thaw, until

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, RunState
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.e2e

STAGE = "shipping_priority"
WAVE = 4  # partitions


def state_of(stack: Stack, run: DagRun) -> RunState:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        return ledger.runs.get(f"{run.dag_id}/{run.run_id}").state


def stopped(stack: Stack, verb: str, run: DagRun, *words: str) -> dict[str, object]:
    ended = stack.command(verb, f"{run.dag_id}/{run.run_id}", "--json", *words)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout)["run"])


def assert_goes_on(stack: Stack, run: DagRun, interval: str, reused: int) -> None:
    answer = stack.resume(run)
    assert (answer["reuse"], answer["run"]) == (reused, stack.partitions - reused)
    assert state_of(stack, run) is RunState.FINISHED
    stack.assert_answer_is_right(interval)


def test_a_suspended_run_ends_behind_the_waves_under_way_and_goes_on_from_there(stack: Stack):
    stack.inject(Point.BEFORE_WRITE, STAGE, 3, FaultAction.FREEZE)
    run = stack.start("suspended")
    task = stack.await_frozen_task()
    assert stopped(stack, "suspend", run, "--no-wait")["state"] == "suspended"
    thaw(task)
    stack.finish(run, expected="failed")
    assert [(attempt.state, attempt.failure) for attempt in stack.attempts_of(run, STAGE)] == [
        (AttemptState.CANCELED, "suspended")
    ]
    assert "stopped behind a wave" in [event.text for event in stack.events(run) if event.kind == "suspended"]
    assert stack.airflow.tasks(run.dag_id, run.run_id)[STAGE].number == 1
    assert state_of(stack, run) is RunState.SUSPENDED
    assert len(stack.records("suspended")[STAGE]) == 3 * WAVE
    assert_goes_on(stack, run, "suspended", reused=stack.partitions - 1 - 16 + 3 * WAVE)


def test_a_cancelled_run_ends_at_once_and_goes_on_from_there(stack: Stack):
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.HANG)
    run = stack.start("cancelled")
    until(lambda: len(stack.records("cancelled").get(STAGE, ())) == WAVE, "a wave is recorded")
    assert stopped(stack, "cancel", run)["state"] == "canceled"
    assert stack.finish(run, expected="failed").state == "failed"
    (attempt,) = stack.attempts_of(run, STAGE)
    assert (attempt.state, attempt.failure) == (AttemptState.CANCELED, "cancelled by `stagehold cancel`")
    refused = stack.command("cancel", f"{run.dag_id}/{run.run_id}")
    assert (refused.returncode, "is canceled, so there is nothing to stop" in refused.stderr) == (1, True)
    assert_goes_on(stack, run, "cancelled", reused=stack.partitions - 1 - 16 + WAVE)
