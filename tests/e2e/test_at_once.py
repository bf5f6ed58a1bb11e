"""An eager pipeline over mapped tasks in a pool, one of which freezes, on the live scheduler, to its rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from tests.e2e.stack import Stack, thaw, until

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import SPARK_POOL

pytestmark = pytest.mark.e2e

PIPELINE, STAGE = "at_once", "orders_by_customer"
ANSWER = """
    SELECT o_orderkey, o_custkey FROM read_parquet(?) JOIN read_parquet(?) ON o_custkey = c_custkey
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
"""


def consumable(stack: Stack, interval: str) -> set[int]:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        newest = ledger.partitions.newest(Cell(PIPELINE, STAGE, interval))
    return {record.partition for record in newest if record.state is PartitionState.CONSUMABLE}


def instances(stack: Stack, run: DagRun) -> list[dict[str, object]]:
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances"
    return list(stack.airflow._send("GET", path)["task_instances"])


def test_tasks_start_at_once_in_their_pool_and_a_frozen_share_is_computed_by_the_other(stack: Stack) -> None:
    inject(stack.settings.home_path, Point.BEFORE_PUBLISH, STAGE, 1, FaultAction.FREEZE, "frozen share")
    run = stack.airflow.trigger(PIPELINE, conf={"interval": "frozen share"})
    frozen = stack.await_frozen_task()
    until(lambda: consumable(stack, "frozen share") == {0, 1, 2, 3}, "the other share's task has computed both")
    thaw(frozen)
    stack.finish(run)

    found = instances(stack, run)
    assert Counter(str(one["task_id"]) for one in found) == {"customer": 2, "orders": 1, STAGE: 2}
    assert {(one["pool"], one["try_number"]) for one in found} == {(SPARK_POOL, 1)}
    started = {str(one["task_id"]): str(one["start_date"]) for one in found}
    ended = {str(one["task_id"]): str(one["end_date"]) for one in found}
    assert started[STAGE] < max(ended["customer"], ended["orders"])
    assert {"speculation", "superseded"} <= {event.kind for event in stack.events(run)}

    raw = Path(stack.settings.lake_uri) / "raw"
    rows = duckdb.execute(ANSWER, [str(raw / table / "*.parquet") for table in ("orders", "customer")]).fetchall()
    with Ledger.open(stack.settings.ledger_url) as ledger:
        table = ledger.partitions.newest(Cell(PIPELINE, STAGE, "frozen share"))[0].table
    published = DeltaTable(table).to_pyarrow_table(columns=["o_orderkey", "o_custkey"]).to_pylist()
    assert sorted((row["o_orderkey"], row["o_custkey"]) for row in published) == sorted(rows)
