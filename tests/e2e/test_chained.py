"""Stages that read each other share by share, and tasks that ask for splits, on the live scheduler."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from tests.e2e.stack import Stack, thaw, until
from tests.e2e.test_at_once import instances

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, Cell
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.journal.journal import TOOK

pytestmark = pytest.mark.e2e

CHAINED, ASKING = "chained", "asking"


def consumable(stack: Stack, pipeline: str, stage: str, interval: str) -> set[int]:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        newest = ledger.partitions.newest(Cell(pipeline, stage, interval))
    return {record.partition for record in newest if record.state is PartitionState.CONSUMABLE}


def assert_rows_are_right(stack: Stack, table: str, interval: str) -> None:
    raw = Path(stack.settings.lake_uri) / "raw" / "customer" / "*.parquet"
    query = "SELECT c_custkey FROM read_parquet(?) WHERE c_mktsegment = 'BUILDING' ORDER BY 1"
    keys = [key for (key,) in duckdb.execute(query, [str(raw)]).fetchall()]
    (log,) = Path(stack.settings.lake_uri).glob(f"**/{table}/_delta_log")
    found = DeltaTable(str(log.parent)).to_pyarrow_table(filters=[("_interval", "=", interval)]).to_pylist()
    assert sorted(row["c_custkey"] for row in found) == keys


def states(stack: Stack, run: DagRun, task: str) -> dict[int, str | None]:
    found = {}
    for one in instances(stack, run):
        if one["task_id"] == task:
            found[int(str(one["map_index"]))] = str(one["state"]) if one["state"] else None
    return found


def test_a_readers_share_is_done_before_another_producers_share_is(stack: Stack) -> None:
    inject(stack.settings.home_path, Point.BEFORE_WRITE, "customer", 1, FaultAction.FREEZE, "one by one")
    run = stack.airflow.trigger(CHAINED, conf={"interval": "one by one"})
    frozen = stack.await_frozen_task()
    until(lambda: "success" in states(stack, run, "kept").values(), "a share of the reader is done")
    (slow,) = [index for index, state in states(stack, run, "customer").items() if state != "success"]
    assert states(stack, run, "kept") == {1 - slow: "success", slow: None}
    assert consumable(stack, CHAINED, "customer", "one by one") == ({2, 3} if slow == 0 else {0, 1})
    assert consumable(stack, CHAINED, "kept", "one by one") == ({2, 3} if slow == 0 else {0, 1})
    thaw(frozen)
    stack.finish(run)
    assert Counter(str(one["task_id"]) for one in instances(stack, run)) == {"customer": 2, "kept": 2, "counted": 1}
    assert_rows_are_right(stack, "chained", "one by one")


def test_a_chain_that_failed_in_the_middle_is_resumed_share_by_share(stack: Stack) -> None:
    inject(stack.settings.home_path, Point.BEFORE_WRITE, "kept", 1, FaultAction.FAIL, "in the middle")
    run = stack.airflow.trigger(CHAINED, conf={"interval": "in the middle"})
    stack.finish(run, "failed")
    assert sorted(map(str, states(stack, run, "kept").values())) == ["failed", "success"]
    cleared = stack.resume(run)["cleared"]
    assert isinstance(cleared, list)
    assert sorted(task["task_id"] for task in cleared) == ["counted", "kept"]
    assert set(states(stack, run, "kept").values()) == {"success"}
    assert_rows_are_right(stack, "chained", "in the middle")


def test_tasks_take_splits_of_a_frozen_one_and_its_share_is_done_when_it_is_consumable(stack: Stack) -> None:
    inject(stack.settings.home_path, Point.BEFORE_PUBLISH, "customer", 1, FaultAction.FREEZE, "asked for")
    run = stack.airflow.trigger(ASKING, conf={"interval": "asked for"})
    frozen = stack.await_frozen_task()
    until(lambda: "success" in states(stack, run, "customer").values(), "the other has taken all the rest")
    assert sorted(map(str, states(stack, run, "customer").values())) == ["running", "success"]
    assert len(consumable(stack, ASKING, "customer", "asked for")) >= 6
    thaw(frozen)
    stack.finish(run)
    with Ledger.open(stack.settings.ledger_url) as ledger:
        history = ledger.partitions.history(Cell(ASKING, "customer", "asked for"))
    assert Counter(record.partition for record in history) == dict.fromkeys(range(8), 1)
    took = [event for event in stack.events(run) if event.kind == TOOK]
    assert {event.subject for event in took} == {"customer[0-3]", "customer[4-7]"}
    assert stack.attempts(run)[-1].state is AttemptState.FINISHED
    assert_rows_are_right(stack, "asking", "asked for")
