"""Real runs that really die, on a real Airflow with a real Spark, judged by DuckDB."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.stack import PARTITIONS, Stack, freeze, parent_of, table_versions, thaw, until

from stagehold.errors import SessionClosed
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import Attempt, AttemptState, Cell, PartitionState
from stagehold.run.faults import FaultAction, Point
from stagehold.run.server import running_server
from stagehold.run.sessions import open_session, session_id

pytestmark = pytest.mark.e2e

STAGE = "shipping_priority"
NOTICED_SECONDS = 10  # a wave's work, Airflow's detection, its retry delay and the start of a process
CANCELLED_SECONDS = 5
HEARTBEAT_SECONDS = 15  # a task's process asks Airflow every five to ten whether it may go on, and is then stopped
TAKEN_OVER_SECONDS = 45  # a new scheduler's start, and Airflow's patience with the old one


def test_a_run_succeeds_and_a_second_one_of_its_interval_reuses_everything_without_a_session(stack: Stack, whole_run: DagRun):
    stack.assert_answer_is_right("whole")
    records = stack.records("whole")
    assert sum(len(found) for found in records.values()) == PARTITIONS
    assert all(len({record.wave for record in found}) > 1 for stage, found in records.items() if stage != "top_orders")
    again = stack.run("whole")
    assert stack.records("whole") == records
    assert {attempt.state for attempt in stack.attempts(again)} == {AttemptState.FINISHED}
    for task_id, task in stack.airflow.tasks(again.dag_id, again.run_id).items():
        log = stack.log(again, task_id, task.number)
        assert "computed 0 in 0 waves" in log
        assert "Spark session" not in log
    assert "opened Spark session" in stack.log(whole_run, STAGE, 1)


def test_of_two_runs_of_one_interval_one_waits_for_the_other_and_computes_nothing_again(stack: Stack):
    runs = [stack.start("two"), stack.start("two")]
    for run in runs:
        stack.finish(run)
        assert {task.number for task in stack.airflow.tasks(run.dag_id, run.run_id).values()} == {1}  # no try failed
    with Ledger.open(stack.settings.ledger_url) as ledger:
        times = {stage: len(ledger.partitions.history(Cell(run.dag_id, stage, "two"))) for stage in stack.records("two")}
    assert sum(times.values()) == PARTITIONS, times
    assert "waiting" in {event.kind for run in runs for event in stack.events(run)}
    stack.assert_answer_is_right("two")


def test_a_killed_task_goes_on_after_its_last_recorded_wave(stack: Stack):
    stack.inject(Point.BEFORE_PUBLISH, STAGE, 3, FaultAction.KILL)
    run = stack.start("killed")
    until(lambda: len(stack.records("killed").get(STAGE, ())) == 8, "two waves of the stage are recorded")
    before = stack.records("killed")
    killed = max(record.recorded_at for record in before[STAGE])
    stack.finish(run)
    print(
        "seconds from the last wave before the kill to the next attempt:",
        seconds := (attempts_of(stack, run)[1].started_at - killed).total_seconds(),
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
        "seconds from the scheduler's end to the next attempt:", seconds := (attempts_of(stack, run)[1].started_at - killed).total_seconds()
    )
    assert seconds < TAKEN_OVER_SECONDS
    assert {record.epoch for record in stack.records("scheduler")[STAGE]} == {1, 2}
    stack.assert_answer_is_right("scheduler")


def test_a_zombie_that_wakes_up_after_its_successor_changes_nothing_readable(stack: Stack):
    stack.inject(Point.BEFORE_PUBLISH, STAGE, 2, FaultAction.FREEZE)
    run = stack.start("zombie")
    zombie = stack.await_frozen_task()
    supervisor = parent_of(zombie)
    freeze(supervisor)  # or it would report for the zombie that all is well
    silent = datetime.now(UTC)
    stack.finish(run)
    print(
        "seconds from the supervisor's last sign to the next attempt:",
        seconds := (attempts_of(stack, run)[1].started_at - silent).total_seconds(),
    )
    assert seconds < stack.settings.lease_seconds + NOTICED_SECONDS
    finished = stack.records("zombie")
    versions = table_versions(finished[STAGE][0].table)
    thaw(zombie)
    assert [attempt.failure_rule for attempt in attempts_of(stack, run)] == ["worker_lost", None]
    until(lambda: any(event.kind == "fenced" for event in stack.events(run)), "the zombie finds out that it was fenced")
    thaw(supervisor)
    until(lambda: "was fenced by epoch 2" in stack.log(run, STAGE, 1), "the zombie's log says so")
    assert stack.records("zombie") == finished
    assert table_versions(finished[STAGE][0].table) == versions
    assert stack.airflow.run(run.dag_id, run.run_id).state == "success"
    stack.assert_answer_is_right("zombie")


def test_a_commit_that_could_not_be_recorded_is_adopted(stack: Stack):
    stack.inject(Point.AFTER_PUBLISH, STAGE, 2, FaultAction.KILL)
    run = stack.run("adopted")
    adopted = [record.partition for record in stack.records("adopted")[STAGE] if record.reason and "adopted" in record.reason]
    assert adopted == [4, 5, 6, 7]
    assert "adopted 4 partitions" in stack.log(run, STAGE, 2)
    stack.assert_answer_is_right("adopted")


def test_a_failed_gate_blocks_its_partition_and_mended_data_runs_only_what_follows(stack: Stack, tmp_path: Path):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    stack.run_here("gated")
    published = stack.records("gated")["top_orders"]
    lines = sorted((Path(stack.settings.lake_uri) / "raw" / "lineitem").glob("*.parquet"))[5]
    good = shutil.copy2(lines, tmp_path / "good.parquet")
    table = pq.read_table(lines)
    negative = pc.multiply(table["l_extendedprice"], pa.scalar(-1)).cast(table.schema.field("l_extendedprice").type)
    pq.write_table(table.set_column(table.schema.get_field_index("l_extendedprice"), "l_extendedprice", negative), lines)
    try:
        run = stack.run("gated", expected="failed")
    finally:
        shutil.copy2(good, lines)
    states = {record.partition: record.state for record in stack.records("gated")[STAGE]}
    assert PartitionState.BLOCKED in states.values()
    assert stack.records("gated")["top_orders"] == published
    text = "\n".join(stack.failures(run))
    assert "minimum.revenue" in text
    assert "stagehold resume" in text
    answer = stack.resume(run)
    assert [task["task_id"] for task in answer["cleared"]] == ["lineitem", STAGE, "top_orders"]
    assert answer["reuse"] >= 16 + 16 + 15
    stack.assert_answer_is_right("gated")


def test_restore_from_a_stage_in_a_new_run(stack: Stack):
    stack.run_here("restored")
    before = stack.records("restored")
    stack.run("restored", restore_from_stage="orders_by_customer")
    after = stack.records("restored")
    unchanged = [stage for stage in before if before[stage] == after[stage]]
    assert sorted(unchanged) == ["customer", "lineitem", "orders"]
    stack.assert_answer_is_right("restored")


def test_a_run_that_failed_for_good_is_resumed_by_the_command(stack: Stack):
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.FAIL)
    run = stack.run("command", expected="failed")
    resumed = stack.command("resume", f"{run.dag_id}/{run.run_id}")
    assert resumed.returncode == 0, resumed.stderr
    stack.finish(run)
    stack.assert_answer_is_right("command")


def test_a_task_that_is_stopped_by_hand_cannot_write_any_more_and_is_resumed(stack: Stack):
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.HANG)
    run = stack.start("stopped")
    until(lambda: len(stack.records("stopped").get(STAGE, ())) == 4, "one wave of the stage is recorded")
    stack.airflow.mark_failed(run, STAGE)
    until(lambda: attempts_of(stack, run)[-1].state is AttemptState.CANCELED, "the attempt has been cancelled", CANCELLED_SECONDS)
    stack.finish(run, expected="failed")
    with pytest.raises(SessionClosed):
        open_session(stack.settings, session_id(stack.settings, attempts_of(stack, run)[-1].attempt_id), wait_seconds=0)
    assert stack.resume(run)["reuse"] == 4 * 16 + 4
    stack.assert_answer_is_right("stopped")


def test_a_run_that_takes_too_long_is_cancelled_and_resumed(stack: Stack):
    stack.inject(Point.AFTER_RECORD, "hurried", 1, FaultAction.HANG)
    run = stack.airflow.trigger("hurried", conf={"interval": "late"})
    stack.finish(run, expected="failed")
    until(
        lambda: [one.state for one in stack.attempts(run)] == [AttemptState.CANCELED], "the attempt has been cancelled", HEARTBEAT_SECONDS
    )
    with pytest.raises(SessionClosed):
        open_session(stack.settings, session_id(stack.settings, stack.attempts(run)[0].attempt_id), wait_seconds=0)
    assert stack.resume(run)["reuse"] == 4


def attempts_of(stack: Stack, run: DagRun) -> list[Attempt]:
    """Attempts of the stage that is made to fail, oldest first."""
    return sorted((attempt for attempt in stack.attempts(run) if attempt.region == STAGE), key=lambda attempt: attempt.epoch)
