"""Whoever asks pyspark for a session gets the attempt's: in a function, in its threads, where a module begins."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import FunctionFailed
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.spark.session.project_modules import as_active

pytestmark = pytest.mark.spark

JOBS = """
from concurrent.futures import ThreadPoolExecutor

import pyspark.pandas as ps
from pyspark.sql import SparkSession, functions as F

from stagehold import stage

spark = (
    SparkSession.builder.appName("mine")
    .master("local[*]")
    .config("spark.executor.memory", "4g")
    .enableHiveSupport()
    .getOrCreate()
)
spark.conf.set("spark.sql.shuffle.partitions", "3")
LOOKUP = spark.createDataFrame([(0, 10), (1, 20)], "kind long, worth long")
WAYS = (
    SparkSession.getActiveSession,
    SparkSession.active,
    lambda: SparkSession.builder.getOrCreate(),
    lambda: SparkSession.builder.master("local[2]").enableHiveSupport().config("spark.sql.ansi.enabled", "true")
    .getOrCreate(),
)


def worth(number):
    return 10 * (1 + number % 2)


def rows_of_nothing(number):
    return spark.range(number).count()


@stage
def looked_up(ctx, source):
    return source.join(LOOKUP, F.col("number") % 2 == F.col("kind")).select("number", "worth")


@stage
def again(ctx, looked_up):
    return looked_up.join(LOOKUP.drop("kind"), "worth").select("number", "worth")


@stage
def in_workers(ctx, source):
    return source.select("number", F.udf(worth, "long")("number").alias("worth"))


@stage
def every_way(ctx, source):
    for way in WAYS:
        assert way() is source.sparkSession
        with ThreadPoolExecutor() as pool:
            assert pool.submit(way).result() is source.sparkSession
    assert spark is source.sparkSession is ps.range(1).to_spark(index_col="index").sparkSession
    with ThreadPoolExecutor() as pool:
        more = pool.submit(lambda: ps.range(3).shape[0]).result()
    return source.where(F.lit(more) == 3)


@stage
def asks_in_workers(ctx, source):
    return source.select(F.udf(rows_of_nothing, "long")("number").alias("number"))
"""


@pytest.fixture
def project(tmp_path, spark_remote):
    folder = tmp_path / f"active_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    return SmallProject.make(folder, spark_remote, JOBS)


def rows_in(records) -> list[tuple[int, int]]:
    tables = [pq.read_table(Path(record.table) / file.path) for record in records for file in record.files]
    return sorted((row["number"], row["worth"]) for table in tables for row in table.to_pylist())


WORTH = [(number, 10 * (1 + number % 2)) for number in range(100)]
KEYED = {"exchange": "keyed", "key": "number"}


def test_a_module_takes_the_session_of_each_attempt_and_never_an_ended_one(project):
    stages = {
        "looked_up": {"source": NUMBERS},
        "again": {"inputs": {"looked_up": KEYED}, "partitions": 2, "max_parallelism": 8},
    }
    assert rows_in(project.run(project.pipeline("one", stages), "one")["again"]) == WORTH
    assert rows_in(project.run(project.pipeline("two", stages), "two")["again"]) == WORTH


def test_workers_import_a_module_that_takes_a_session(project):
    assert rows_in(project.run(project.pipeline("one", {"in_workers": {"source": NUMBERS}}), "one")["in_workers"]) == (
        WORTH
    )


def test_it_is_the_session_of_the_frames_in_every_way_and_thread(project):
    records = project.run(project.pipeline("one", {"every_way": {"source": NUMBERS}}), "one")
    assert sum(record.rows for record in records["every_way"]) == 100


def test_a_function_that_uses_a_session_in_a_worker_is_told_that_there_is_none(project):
    with pytest.raises(FunctionFailed, match=r"there is no Spark in a worker") as raised:
        project.run(project.pipeline("one", {"asks_in_workers": {"source": NUMBERS}}), "one")
    assert "in rows_of_nothing" in raised.value.place


def test_a_plan_imports_no_module(project):
    module = Path(project.settings.project) / f"{Path(project.settings.project).name}.py"
    module.write_text(f"{JOBS}\nraise AssertionError('imported')\n")
    pipeline = project.pipeline("one", {"looked_up": {"source": NUMBERS}})
    assert current_plan(RunRequest(pipeline, "one", "i", {}), project.settings).needs_session


def test_settings_given_to_a_builder_are_the_sessions_and_those_of_a_server_are_left_out(spark):
    from pyspark.sql import SparkSession

    with as_active(spark):
        builder = SparkSession.builder.config("spark.executor.memory", "7g").config("spark.sql.some.option", "on")
        assert builder.getOrCreate() is spark
    assert spark.conf.get("spark.sql.some.option") == "on"
    assert spark.conf.get("spark.executor.memory", None) != "7g"
    spark.conf.unset("spark.sql.some.option")
