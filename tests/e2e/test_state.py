"""A backfill of a pipeline that keeps state: a date waits for the one before, also while somebody mends that."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from tests.e2e.forms import ask_for_backfill
from tests.e2e.stack import RUN_SECONDS, Stack, until

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.local.demo.sample import bring_day
from stagehold.run.faults import FaultAction, Point, inject

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PIPELINE, STAGE = "running", "customer_totals"
DAYS = [date(2025, 3, 1), date(2025, 3, 2)]


def run_of(day: date) -> DagRun:
    return DagRun(PIPELINE, f"backfill__{day}T00:00:00+00:00", "")


def backfill(stack: Stack) -> None:
    """Both dates at once, as far as Airflow is concerned."""
    body = {
        "from_date": f"{DAYS[0]}T00:00:00Z",
        "to_date": f"{DAYS[1]}T12:00:00Z",
        "reprocess_behavior": "completed",
        "max_active_runs": 2,
    }
    ask_for_backfill(stack, PIPELINE, body)


def kept(stack: Stack, day: date) -> list[str | None]:
    """Of each partition: the interval whose state its own was made from."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        records = ledger.partitions.newest_of(PIPELINE, str(day)).get(STAGE, ())
    return [part.after for record in records for part in record.kept]


def test_a_date_waits_for_the_one_before_and_goes_on_when_that_is_mended(stack: Stack) -> None:
    first, second = map(run_of, DAYS)
    for day in DAYS:
        bring_day(Path(stack.settings.lake_uri), day)
    inject(stack.settings.home_path, Point.AFTER_RECORD, STAGE, 1, FaultAction.FAIL, str(DAYS[0]))
    backfill(stack)
    assert stack.airflow.wait(first, RUN_SECONDS).state == "failed"
    until(lambda: "daily_orders" in of_day(stack, DAYS[1]), "the second date has read its orders")
    assert STAGE not in of_day(stack, DAYS[1])
    stack.resume(first)
    assert stack.finish(second).state == "success"
    assert kept(stack, DAYS[0]) == [None] * 8
    assert kept(stack, DAYS[1]) == [str(DAYS[0])] * 8
    table = DeltaTable(f"{stack.settings.lake_uri}/marts/{PIPELINE}")
    rows = table.to_pyarrow_table(filters=[("_interval", "=", str(DAYS[1]))]).to_pylist()
    query = "SELECT o_custkey, sum(o_totalprice)::DECIMAL(18,2), count(*) FROM read_parquet(?) GROUP BY ALL ORDER BY 1"
    with duckdb.connect() as connection:
        wanted = connection.execute(query, [f"{stack.settings.lake_uri}/raw/daily_orders/*.parquet"]).fetchall()
    assert sorted((row["custkey"], row["spent"], row["orders"]) for row in rows) == wanted


def of_day(stack: Stack, day: date) -> set[str]:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        return set(ledger.partitions.newest_of(PIPELINE, str(day)))
