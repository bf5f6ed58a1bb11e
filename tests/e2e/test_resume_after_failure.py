"""Real runs that really fail, on a real Airflow with a real Spark, and are resumed; judged by DuckDB."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.e2e.stack import Stack, until

from stagehold.errors import SessionClosed
from stagehold.model.records import AttemptState
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point
from stagehold.spark.session.sessions import open_session, session_id

pytestmark = pytest.mark.e2e

STAGE = "shipping_priority"
CANCELLED_SECONDS = 5


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
    pq.write_table(
        table.set_column(table.schema.get_field_index("l_extendedprice"), "l_extendedprice", negative), lines
    )
    try:
        run = stack.run("gated", expected="failed")
    finally:
        shutil.copy2(good, lines)
    states = {record.partition: record.state for record in stack.records("gated")[STAGE]}
    assert PartitionState.BLOCKED in states.values()
    assert stack.records("gated")["top_orders"] == published
    text = "\n".join(stack.failures(run))
    assert "expect_column_values_to_be_between(revenue, min_value=0" in text
    assert "stagehold resume" in text
    answer = stack.resume(run)
    assert [task["task_id"] for task in answer["cleared"]] == ["lineitem", STAGE, "top_orders"]
    assert answer["reuse"] >= 4 + 4 + 3
    stack.assert_answer_is_right("gated")


@pytest.mark.in_each_turn
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
    until(
        lambda: stack.attempts_of(run, STAGE)[-1].state is AttemptState.CANCELED,
        "the attempt has been cancelled",
        CANCELLED_SECONDS,
    )
    stack.finish(run, expected="failed")
    with pytest.raises(SessionClosed):
        open_session(
            stack.settings, session_id(stack.settings, stack.attempts_of(run, STAGE)[-1].attempt_id), wait_seconds=0
        )
    assert stack.resume(run)["reuse"] == 4 * 4 + 4
    stack.assert_answer_is_right("stopped")
