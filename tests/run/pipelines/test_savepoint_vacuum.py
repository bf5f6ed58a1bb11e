"""Spark's VACUUM and delta-rs' with no retention at all, against a savepoint of what both committers wrote."""

from __future__ import annotations

import duckdb
import pytest
from deltalake import DeltaTable
from tests.made_records import savepoint_request
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.chronicle.chronicle import open_ledger
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Faults
from stagehold.run.stage.spark_engine import SparkEngine

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def staged(ctx, numbers):
    return numbers.withColumn("twice", 2 * F.col("number"))

@stage
def by_spark(ctx, numbers):
    return numbers.withColumn("thrice", 3 * F.col("number"))
"""
TABLES = {"staged": "marts.staged", "by_spark": "marts.by_spark"}


def published(committer: str, table: str):
    output = {"type": "blocking_persistent", "table": table, "committer": committer}
    return {"inputs": {"numbers": "forward"}, "output": output}


STAGES = {
    "numbers": {"source": NUMBERS, "output": {"type": "blocking"}},
    "staged": published("staged", TABLES["staged"]),
    "by_spark": published("delta_spark", TABLES["by_spark"]),
}


def vacuum(spark, uri: str) -> None:
    setting = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(setting, "false")
    spark.sql(f"VACUUM delta.`{uri}` RETAIN 0 HOURS").collect()
    spark.conf.unset(setting)
    DeltaTable(uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def saved(project: SmallProject, name: str) -> Checkpoint:
    savepoints = Savepoints(project.settings.lake_uri)
    found = savepoints.get(name)
    return savepoints.stored(found).read_checkpoint(found.number)


def rows(checkpoint: Checkpoint, stage: str) -> list[tuple[int, ...]]:
    (snapshot,) = (one for one in checkpoint.stages if one.shape.name == stage)
    files = [f"{partition.table}/{file.path}" for partition in snapshot.partitions for file in partition.files]
    return duckdb.sql(f"SELECT * FROM read_parquet({files}, hive_partitioning=false) ORDER BY number").fetchall()


def test_what_a_savepoint_points_to_is_vacuumed_by_nobody(tmp_path, spark_remote, spark):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    pipeline = project.pipeline("kept", STAGES)
    project.run(pipeline, "first")
    asked = savepoint_request("kept", "first")
    with open_ledger(project.settings) as ledger:
        place = Workplace(ledger, project.settings, print, SparkEngine(project.settings, print), Faults(tmp_path, ""))
        made = create_savepoint(asked, pipeline, place)
        for number in range(4):
            project.write_source(number, 10)
        project.run(pipeline, "second")
        for uri in (f"{project.settings.lake_uri}/marts/{name}" for name in TABLES):
            vacuum(spark, uri)
        found = saved(project, "kept")
        assert {stage.shape.name: missing_files(stage.partitions) for stage in found.stages} == {
            stage: frozenset() for stage in STAGES
        }
        assert rows(found, "staged") == [(number, 2 * number) for number in range(100)]
        assert [row[:2] for row in rows(found, "by_spark")] == [(number, 3 * number) for number in range(100)]
        copies = tmp_path / "lake" / "marts" / "by_spark" / "_savepoints"
        assert [one.name for one in copies.iterdir()] == ["kept"]
        dispose_of(made, place)
        assert not list(copies.iterdir())
    assert INTERVAL in {stage.partitions[0].cell.interval for stage in found.stages}
