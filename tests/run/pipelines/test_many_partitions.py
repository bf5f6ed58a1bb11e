"""Partitions that share Spark tasks come out as partitions with a task of their own, stage by stage."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

pytestmark = pytest.mark.spark

MANY = 40
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def rows(ctx, source):
    return source.where("number % 10 < 9")

@stage
def greatest(ctx, rows):
    return rows.groupBy("customer").agg(F.max("number").alias("number"))

@stage
def flowing(ctx, rows):
    return rows.withColumn("number", F.col("number") * 2)

@stage
def seen(ctx, flowing):
    return flowing.withColumn("alone", F.lit(len(ctx.partitions)))

@stage
def together(ctx, rows):
    return rows.groupBy("customer").agg(F.sum("number").alias("number"))

@stage
def apart(ctx, rows):
    order = __import__("pyspark").sql.Window.orderBy("number", "customer")
    return rows.withColumn("place", F.row_number().over(order))

@stage
def counting(ctx, rows):
    today = rows.groupBy("customer").agg(F.count("*").alias("orders"))
    before = ctx.state.read("orders")
    after = before.unionByName(today).groupBy("customer").agg(F.sum("orders").alias("orders"))
    ctx.state.put("orders", after)
    return after

@stage
def large(ctx, rows):
    return rows
"""
BLOCKING = {"output": {"type": "blocking"}}
BY_CUSTOMER = {"inputs": {"rows": {"exchange": "keyed", "key": "customer"}}, "partitions": MANY, **BLOCKING}
STAGES = {
    "rows": {"source": {"kind": "parquet", "path": "${lake}/many/*.parquet", "splits": MANY}, **BLOCKING},
    "greatest": {"inputs": {"rows": "forward"}, **BLOCKING},
    "flowing": {"inputs": {"rows": "forward"}, "output": {"type": "pipelined"}},
    "seen": {"inputs": {"flowing": "forward"}, **BLOCKING},
    "together": BY_CUSTOMER,
    "apart": BY_CUSTOMER,
    "counting": {
        **BY_CUSTOMER,
        "state": {"orders": {"key": "customer", "columns": {"customer": "bigint", "orders": "bigint"}}},
    },
    "large": {**BY_CUSTOMER, "output": {"type": "blocking", "file_bytes": "1kb"}},
}


@pytest.fixture
def project(tmp_path, spark_remote):
    """Forty files: every seventh is empty, one has most of the rows, and some rows have no customer."""
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    folder = Path(project.settings.lake_uri) / "many"
    folder.mkdir()
    for file in range(MANY):
        numbers = range(0 if file % 7 == 0 else 2000 if file == 11 else 20)
        columns = {
            "number": pa.array([1000 * file + number for number in numbers], pa.int64()),
            "customer": pa.array([None if n % 13 == 0 else n * n % 97 for n in numbers], pa.int64()),
        }
        pq.write_table(pa.table(columns), folder / f"{file:02}.parquet")
    return project


def made(project: SmallProject, interval: str) -> dict[str, list[tuple[object, ...]]]:
    """What all partitions hold and keep, by stage."""
    pipeline = project.pipeline("many", STAGES, schedule="@daily", wave="5min")
    return {
        stage: [
            (record.partition, record.rows, record.fingerprint, *(part.fingerprint for part in record.kept))
            for record in records
        ]
        for stage, records in project.run(pipeline, f"run-{interval}", interval=interval).items()
    }


def tasks_of(project: SmallProject, interval: str) -> dict[str, int]:
    """How many tasks wrote files, by stage, of those that took one wave."""
    records = project.records(project.pipeline("many", STAGES, schedule="@daily", wave="5min"), interval)
    assert {record.wave for some in records.values() for record in some} == {1}
    return {
        stage: len({re.findall(r"part-(\d+)-", file.path)[0] for record in some for file in record.files})
        for stage, some in records.items()
    }


def test_partitions_that_share_tasks_hold_what_they_hold_by_themselves(project, tmp_path):
    wide = replace(project, settings=replace(project.settings, spark_cores=2 * MANY))
    alone = made(wide, "2026-11-01")
    elsewhere = replace(project, settings=replace(project.settings, home=str(tmp_path / "second")))
    Path(elsewhere.settings.home_path / "lake").mkdir(parents=True)
    (elsewhere.settings.home_path / "lake" / "many").symlink_to(Path(project.settings.lake_uri) / "many")
    first = made(elsewhere, "2026-11-01")  # waves that grow, without and with tasks that are shared
    assert first == alone
    assert made(elsewhere, "2026-11-02") == made(wide, "2026-11-02")
    own, shared = tasks_of(wide, "2026-11-02"), tasks_of(elsewhere, "2026-11-02")
    assert {stage for stage in own if shared[stage] < own[stage] - 1} == own.keys()
    counts = {record.partition: len(record.files) for record in records_of(elsewhere, "large")}
    assert max(counts.values()) > 1
    assert counts == {record.partition: len(record.files) for record in records_of(wide, "large")}


def records_of(project: SmallProject, stage: str):
    pipeline = project.pipeline("many", STAGES, schedule="@daily", wave="5min")
    return project.records(pipeline, "2026-11-02")[stage]
