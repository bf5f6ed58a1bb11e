"""Stages whose outputs are not stored are computed along with their readers, on a real Spark server."""

from __future__ import annotations

import pytest
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject

from stagehold.model.records import PartitionRecord

pytestmark = pytest.mark.spark

JOBS = '''
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from stagehold import stage

@stage
def numbers(ctx, source):
    return source.withColumn("colour", F.col("number") % 7)

@stage
def costly(ctx, numbers):
    """Leaves a mark for every row that it computes."""
    marks = ctx.params["marks"]

    def marked(number):
        with open(marks, "ab", buffering=0) as file:
            file.write(b".")
        return number * 2

    return numbers.withColumn("number", F.udf(marked, LongType())("number"))

@stage
def even(ctx, costly):
    return costly.where(F.col("colour") % 2 == 0)

@stage
def odd(ctx, costly):
    return costly.where(F.col("colour") % 2 != 0)

@stage
def colours(ctx, costly):
    return costly.groupBy("colour").agg(F.sum("number").alias("total"))
'''


UDFS = """
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def doubled(ctx, numbers):
    return numbers.withColumn("double", F.udf(lambda number: number * 2, LongType(), useArrow=True)("number"))

@stage
def fours(ctx, doubled):
    return doubled.where(F.col("double") % 4 == 0)
"""


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def computed(project: SmallProject, kind: str) -> tuple[dict[str, tuple[PartitionRecord, ...]], int]:
    """What was recorded of the readers of an output of that type, and how many of its rows were computed for that."""
    marks = project.settings.home_path / kind
    stages = {
        "numbers": {"source": NUMBERS},
        "costly": {"inputs": {"numbers": "forward"}, "output": {"type": kind}},
        "even": {"inputs": {"costly": "forward"}},
        "odd": {"inputs": {"costly": "forward"}},
        "colours": {"inputs": {"costly": {"exchange": "keyed", "key": "colour"}}, "partitions": 3},
    }
    return project.run(
        project.pipeline(kind, stages, params={"marks": str(marks)}), f"run of {kind}"
    ), marks.stat().st_size


def test_a_bounded_output_is_computed_once_for_all_its_readers_whatever_session_is_active(project, spark):
    once, rows = computed(project, "pipelined_bounded")
    assert rows == FILES * ROWS
    assert {record.wave for record in once["even"]} == {1, 2}  # forward all the way: waves as ever
    assert {record.wave for record in once["colours"]} == {1}  # every partition needs all of it
    assert [record.partition for record in once["colours"]] == [0, 1, 2]
    assert sum(record.rows for record in once["even"] + once["odd"]) == FILES * ROWS
    again, rows = computed(project, "pipelined")
    # once for the two that divide it, as Spark filters before it computes, and once for the third
    assert rows == 2 * FILES * ROWS
    assert fingerprints(once) == fingerprints(again)


@pytest.mark.timeout(120)
def test_a_filter_on_the_column_of_a_python_function_that_reads_a_source_of_parquet_ends(tmp_path, spark_remote):
    """With Spark's columnar input of Arrow UDFs it hung in each of its runs."""
    project = SmallProject.make(tmp_path, spark_remote, UDFS)
    stages = {
        "numbers": {"source": NUMBERS, "output": {"type": "pipelined"}},
        "doubled": {"inputs": {"numbers": "forward"}, "output": {"type": "pipelined"}},
        "fours": {"inputs": {"doubled": "forward"}},
    }
    recorded = project.run(project.pipeline("filtered", stages), "run of filtered")
    assert sum(record.rows for record in recorded["fours"]) == FILES * ROWS / 2


def fingerprints(recorded: dict[str, tuple[PartitionRecord, ...]]) -> dict[str, list[str]]:
    return {stage: [record.fingerprint for record in records] for stage, records in recorded.items()}
