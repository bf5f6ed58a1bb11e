"""Processes that are killed or frozen in the middle of a stage, on a real Airflow with a real Spark."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.e2e.stack import Stack, freeze, parent_of, table_versions, thaw, until

from stagehold.errors import SessionClosed
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.server.server import running_server
from stagehold.spark.session.sessions import open_session, session_id

pytestmark = pytest.mark.e2e

STAGE = "shipping_priority"
NOTICED_SECONDS = 10  # a wave's work, Airflow's detection, its retry delay and the start of a process
HEARTBEAT_SECONDS = 15  # a task's process asks Airflow every five to ten whether it may go on, and is then stopped
TAKEN_OVER_SECONDS = 45  # a new scheduler's start, and Airflow's patience with the old one


def test_a_killed_task_goes_on_after_its_last_recorded_wave(stack: Stack):
    stack.inject(Point.BEFORE_PUBLISH, STAGE, 3, FaultAction.KILL)
    run = stack.start("killed")
    until(lambda: len(stack.records("killed").get(STAGE, ())) == 8, "two waves of the stage are recorded")
    before = stack.records("killed")
    killed = max(record.recorded_at for record in before[STAGE])
    stack.finish(run)
    print(
        "seconds from the last wave before the kill to the next attempt:",
        seconds := (stack.attempts_of(run, STAGE)[1].started_at - killed).total_seconds(),
    )
    assert seconds < NOTICED_SECONDS
    after = stack.records("killed")
    kept = {record.partition: record for record in before[STAGE]}
    assert {record.partition: record for record in after[STAGE] if record.partition in kept} == kept
    assert {record.epoch for record in after[STAGE]} == {1, 2}
    assert all(after[stage] == before[stage] for stage in ("customer", "orders", "lineitem", "orders_by_customer"))
    stack.assert_answer_is_right("killed")


def test_a_killed_spark_server_comes_back_and_the_stage_goes_on(stack: Stack):
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.FREEZE)
    run = stack.start("server")
    task = stack.await_frozen_task()
    server = running_server(stack.settings)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    thaw(task)
    stack.finish(run)
    tries = {attempt.epoch: attempt.state for attempt in stack.attempts(run) if attempt.region == STAGE}
    assert tries == {1: AttemptState.FAILED, 2: AttemptState.FINISHED}
    assert {record.epoch for record in stack.records("server")[STAGE]} == {1, 2}
    stack.assert_answer_is_right("server")


def test_a_killed_scheduler_comes_back_and_takes_its_tasks_over(stack: Stack):
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.FREEZE)
    run = stack.start("scheduler")
    stack.await_frozen_task()
    os.kill(stack.service("scheduler").pid, signal.SIGKILL)
    killed = datetime.now(UTC)
    stack.finish(run)
    print(
        "seconds from the scheduler's end to the next attempt:",
        seconds := (stack.attempts_of(run, STAGE)[1].started_at - killed).total_seconds(),
    )
    assert seconds < TAKEN_OVER_SECONDS
    assert {record.epoch for record in stack.records("scheduler")[STAGE]} == {1, 2}
    stack.assert_answer_is_right("scheduler")


def test_a_driver_outlives_its_killed_task_and_the_next_try_stays_with_it(stack: Stack):
    submitted = replace(stack, pipeline="submitted")
    submitted.inject(Point.AFTER_RECORD, "customer", 1, FaultAction.FREEZE)
    run = submitted.start("submitted")
    driver = submitted.await_frozen_task()
    os.kill(parent_of(driver), signal.SIGKILL)
    until(lambda: "reconciling" in [event.kind for event in submitted.events(run)], "the next try has found it")
    thaw(driver)
    submitted.finish(run)
    computed, planned = submitted.attempts_of(run, "customer")
    assert (computed.state, planned.state) == (AttemptState.FINISHED, AttemptState.FINISHED)
    assert {record.epoch for record in submitted.records("submitted")["customer"]} == {computed.epoch}
    log = submitted.log(run, "customer", 2)
    assert "the driver of an earlier try is still at work" in log
    assert "opened Spark session" in log


@pytest.fixture
def hanging(stack: Stack) -> DagRun:
    """A run that hangs until its time is up; another test waits for something else meanwhile."""
    stack.inject(Point.AFTER_RECORD, "hurried", 1, FaultAction.HANG)
    return stack.airflow.trigger("hurried", conf={"interval": "late"})


def test_a_zombie_that_wakes_up_after_its_successor_changes_nothing_readable(stack: Stack, hanging: DagRun):
    stack.inject(Point.BEFORE_PUBLISH, STAGE, 2, FaultAction.FREEZE)
    run = stack.start("zombie")
    zombie = stack.await_frozen_task()
    supervisor = parent_of(zombie)
    freeze(supervisor)  # or it would report for the zombie that all is well
    silent = datetime.now(UTC)
    stack.finish(run)
    print(
        "seconds from the supervisor's last sign to the next attempt:",
        seconds := (stack.attempts_of(run, STAGE)[1].started_at - silent).total_seconds(),
    )
    assert seconds < stack.settings.lease_seconds + NOTICED_SECONDS
    finished = stack.records("zombie")
    versions = table_versions(finished[STAGE][0].table)
    thaw(zombie)
    assert [attempt.failure_rule for attempt in stack.attempts_of(run, STAGE)] == ["worker_lost", None]
    until(lambda: any(event.kind == "fenced" for event in stack.events(run)), "the zombie finds out that it was fenced")
    thaw(supervisor)
    until(lambda: "was fenced by epoch 2" in stack.log(run, STAGE, 1), "the zombie's log says so")
    assert stack.records("zombie") == finished
    assert table_versions(finished[STAGE][0].table) == versions
    assert stack.airflow.run(run.dag_id, run.run_id).state == "success"
    stack.assert_answer_is_right("zombie")
    assert_cancelled_and_resumable(stack, hanging)


def assert_cancelled_and_resumable(stack: Stack, run: DagRun) -> None:
    """A run that took longer than it may."""
    stack.finish(run, expected="failed")
    until(
        lambda: [attempt.state for attempt in stack.attempts(run)] == [AttemptState.CANCELED],
        "the attempt has been cancelled",
        HEARTBEAT_SECONDS,
    )
    with pytest.raises(SessionClosed):
        open_session(stack.settings, session_id(stack.settings, stack.attempts(run)[0].attempt_id), wait_seconds=0)
    assert stack.resume(run)["reuse"] == 4
