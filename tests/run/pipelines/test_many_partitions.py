"""Partitions that share Spark tasks come out as partitions with a task of their own, stage by stage."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

from stagehold.model.records import PartitionRecord

pytestmark = pytest.mark.spark

MANY = 12
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
    ctx.state.put("orders", today)
    return today

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
    """Twelve files: some are empty, one has most of the rows, and some rows have no customer."""
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    folder = Path(project.settings.lake_uri) / "many"
    folder.mkdir()
    for file in range(MANY):
        numbers = range(0 if file % 5 == 0 else 2000 if file == 7 else 20)
        columns = {
            "number": pa.array([1000 * file + number for number in numbers], pa.int64()),
            "customer": pa.array([None if n % 13 == 0 else n * n % 97 for n in numbers], pa.int64()),
        }
        pq.write_table(pa.table(columns), folder / f"{file:02}.parquet")
    return project


def made(project: SmallProject, interval: str) -> Mapping[str, Sequence[PartitionRecord]]:
    """What is recorded of all stages, which had a wave each."""
    pipeline = project.pipeline("many", STAGES, schedule="@daily", wave="5min")
    records = project.run(pipeline, f"run-{interval}", interval=interval)
    assert {record.wave for some in records.values() for record in some} == {1}
    return records


def held(records: Sequence[PartitionRecord]) -> list[tuple[object, ...]]:
    return [
        (
            record.partition,
            record.rows,
            record.fingerprint,
            len(record.files),
            [part.fingerprint for part in record.kept],
        )
        for record in records
    ]


def tasks_of(records: Sequence[PartitionRecord]) -> int:
    return len({re.findall(r"part-(\d+)-", file.path)[0] for record in records for file in record.files})


def test_partitions_that_share_tasks_hold_what_they_hold_by_themselves(project):
    alone = made(replace(project, settings=replace(project.settings, spark_cores=MANY)), "2026-11-01")
    with closing(sqlite3.connect(project.settings.home_path / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE partitions SET seconds = 0.001")  # as on a machine that has time
    shared = made(project, "2026-11-02")
    assert {stage: held(records) for stage, records in shared.items()} == {
        stage: held(records) for stage, records in alone.items()
    }
    filled = {stage: sum(record.rows > 0 for record in records) for stage, records in alone.items()}
    assert {stage: tasks_of(records) for stage, records in alone.items()} == filled
    assert {stage: tasks_of(records) for stage, records in shared.items()} == dict.fromkeys(STAGES.keys() & filled, 2)
    assert max(len(record.files) for record in shared["large"]) > 1
