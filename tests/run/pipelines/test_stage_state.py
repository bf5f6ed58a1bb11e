"""Stages that keep state from interval to interval, on a real Spark server: exact against DuckDB over all days so far."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

from stagehold.errors import EarlierMissing
from stagehold.plan.resume.decisions import Action
from stagehold.run.planning.planning import RunRequest, plan_run

pytestmark = pytest.mark.spark

JOBS = '''
from pyspark.sql import functions as F
from stagehold import stage

@stage
def orders(ctx, source):
    return source

@stage
def totals(ctx, orders):
    today = orders.groupBy("customer").agg(F.sum("amount").cast("decimal(18,2)").alias("total"), F.count("*").alias("orders"))
    after = (
        ctx.state.read("totals").unionByName(today).groupBy("customer")
        .agg(F.sum("total").cast("decimal(18,2)").alias("total"), F.sum("orders").alias("orders"))
    )
    ctx.state.put("totals", after)
    seen = ctx.state.read("days").unionByName(orders.select("day").distinct())
    ctx.state.put("days", seen)
    return after
'''
SOURCE = {"kind": "parquet", "path": "${lake}/days/*.parquet", "splits": 2, "incremental": True}
STATE = {
    "totals": {"key": "customer", "columns": {"customer": "bigint", "total": "decimal(18,2)", "orders": "bigint"}},
    "days": {"kind": "split", "columns": {"day": "date"}},
}
TOTALS = {"inputs": {"orders": {"exchange": "keyed", "key": "customer"}}, "partitions": 4, "state": STATE}
DAY = "2026-11-0{}"


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def pipeline(project: SmallProject, **totals):
    stages = {"orders": {"source": SOURCE, "output": {"type": "blocking"}}, "totals": {**TOTALS, **totals}}
    return project.pipeline("customers", stages, schedule="@daily")


def arrive(project: SmallProject, day: int, rows: int = 60) -> None:
    """A day's orders, customers that are NULL among them."""
    dice = random.Random(day)
    customers = [dice.choice([None, *range(40)]) for _ in range(rows)]
    amounts = [Decimal(dice.randrange(-10_000, 100_000)) / 100 for _ in range(rows)]
    table = pa.table(
        {
            "customer": pa.array(customers, pa.int64()),
            "amount": pa.array(amounts, pa.decimal128(12, 2)),
            "day": pa.array([f"2026-11-0{day}"] * rows).cast(pa.date32()),
        }
    )
    path = Path(project.settings.lake_uri) / "days" / f"{day}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)


def told(project: SmallProject, records) -> list[tuple]:
    """What the stage gave, read from its recorded files."""
    files = [f"{record.table}/{file.path}" for record in records["totals"] for file in record.files]
    return duckdb.sql(f"SELECT customer, total, orders FROM read_parquet({files}) ORDER BY ALL").fetchall()


def expected(project: SmallProject, *days: int) -> list[tuple]:
    files = [f"{project.settings.lake_uri}/days/{day}.parquet" for day in days]
    return duckdb.sql(
        "SELECT customer, sum(amount)::DECIMAL(18,2), count(*) "
        f"FROM read_parquet({files}) GROUP BY customer ORDER BY ALL"
    ).fetchall()


def test_totals_go_on_from_day_to_day(project):
    for day in (1, 2, 3):
        arrive(project, day)
        records = project.run(pipeline(project), f"run {day}", DAY.format(day))
        assert told(project, records) == expected(project, *range(1, day + 1))
    kept = [record.kept for record in records["totals"]]
    assert {part.after for parts in kept for part in parts} == {DAY.format(2)}
    again = project.run(pipeline(project), "again", DAY.format(2))
    assert [record.run_id for record in again["totals"]] == ["run 2"] * 4
