"""Which functions are given many partitions at once, and that it makes no difference to what they make."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from tests.run.small_project import FILES, NUMBERS, SmallProject

from stagehold.model.context import StageContext
from stagehold.run.functions import frame_builder as frames
from stagehold.run.functions.stage_call import WatchedContext, is_row_wise
from stagehold.spark.session.project_modules import query_function

pytestmark = pytest.mark.spark

ROW_WISE = {
    "columns": lambda rows: rows.withColumn("a", F.upper(F.lit("a"))).select("id", F.col("a").alias("b")).drop("b"),
    "a condition": lambda rows: rows.where((F.col("id") > 1) | F.col("id").isNull()),
    "text": lambda rows: rows.where("id > 1").withColumn("a", F.expr("case when id > 2 then 1 else 0 end")),
    "lambda": lambda rows: rows.select(F.transform(F.array("id"), lambda x: x + 1).alias("a")),
    "names": lambda rows: rows.withColumnRenamed("id", "n").toDF("m").alias("rows"),
    "explode": lambda rows: rows.select(F.explode(F.array("id", F.lit(1))).alias("n")),
    "a query": lambda rows: rows.sparkSession.sql("SELECT id + 1 AS n FROM {rows} r WHERE r.id > 1", rows=rows),
    "a file of SQL": lambda rows: of_query(rows, "SELECT id, '{x}' AS a FROM source WHERE id > 1"),
    "a query of columns": lambda rows: of_query(rows.select("id"), "SELECT * FROM source").where("id > 2"),
}
NOT = {
    "window": lambda rows: rows.select(F.max("id").over(Window.partitionBy("id"))),
    "window in text": lambda rows: rows.select(F.expr("max(id) over (order by id)")),
    "subquery in text": lambda rows: rows.where("id > (select 1)"),
    "sum": lambda rows: rows.select(F.sum("id")),
    "group": lambda rows: rows.groupBy("id").count(),
    "limit": lambda rows: rows.limit(1),
    "sort": lambda rows: rows.orderBy("id"),
    "distinct": lambda rows: rows.distinct(),
    "union": lambda rows: rows.union(rows),
    "join": lambda rows: rows.join(rows.select(F.col("id").alias("other")), F.col("id") == F.col("other")),
    "place": lambda rows: rows.withColumn("p", F.spark_partition_id()),
    "random": lambda rows: rows.withColumn("p", F.rand(1)),
    "python": lambda rows: rows.withColumn("p", F.udf(lambda n: n, LongType())("id")),
    "a query that sorts": lambda rows: of_query(rows, "SELECT id FROM source ORDER BY id"),
    "a query of a random number": lambda rows: of_query(rows, "SELECT id, rand() AS r FROM source"),
    "a query that joins": lambda rows: of_query(rows, "SELECT a.id FROM source a JOIN source b USING (id)"),
    "several statements": lambda rows: of_query(rows, "SET a = 1; SELECT id FROM source"),
}


def of_query(rows, text):
    return query_function(text)(StageContext("p", "s", "i", None, (0,), 0), source=rows)


@pytest.mark.parametrize("case", ROW_WISE)
def test_rows_that_are_made_one_by_one(spark, case):
    rows = spark.range(3)
    assert is_row_wise(ROW_WISE[case](rows), rows)


@pytest.mark.parametrize("case", NOT)
def test_rows_that_depend_on_others_or_on_their_place(spark, case):
    rows = spark.range(3)
    assert not is_row_wise(NOT[case](rows), rows)


def test_a_context_knows_that_it_was_asked_for_its_partitions():
    context = WatchedContext.of(StageContext("p", "s", "i", None, (1, 2), 3))
    assert (context.seed, context.interval, context.asked) == (3, "i", False)
    assert context.partitions == (1, 2)
    assert context.asked


JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def doubled(ctx, source):
    return source.select((F.col("number") * 2).alias("number"))

@stage
def kept(ctx, doubled):
    return doubled.where(F.col("number") % 4 == 0)

@stage
def greatest(ctx, kept):
    return kept.select(F.max("number").alias("number"))

@stage
def named(ctx, kept):
    return kept.withColumn("partition", F.lit(ctx.partitions[0]))

@stage
def counted(ctx, kept):
    return kept.groupBy("number").count()
"""
STAGES = {
    "doubled": {"source": NUMBERS, "output": {"type": "blocking"}},
    **{name: {"inputs": {"doubled": "forward"}, "output": {"type": "blocking"}} for name in ("kept",)},
    **{name: {"inputs": {"kept": "forward"}, "output": {"type": "blocking"}} for name in ("greatest", "named")},
    "counted": {
        "inputs": {"kept": {"exchange": "keyed", "key": "number"}},
        "partitions": 2,
        "output": {"type": "blocking"},
    },
}


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def made(project: SmallProject, name: str) -> dict[str, list[tuple[int, int, str, int]]]:
    """(partition, rows, fingerprint, files) of every stage."""
    records = project.run(project.pipeline(name, STAGES), name)
    return {
        stage: [(record.partition, record.rows, record.fingerprint, len(record.files)) for record in some]
        for stage, some in records.items()
    }


def test_many_partitions_at_once_are_what_each_is_by_itself(project, monkeypatch):
    at_once: dict[str, list[int]] = {}
    together = frames.FrameBuilder._together

    def noted(self, stage, partitions, column):
        frame = together(self, stage, partitions, column)
        if frame is not None and column != frames.MARK:
            at_once.setdefault(stage.name, []).append(len(partitions))
        return frame

    monkeypatch.setattr(frames.FrameBuilder, "_together", noted)
    quick = made(project, "quick")
    assert {name: sum(sizes) for name, sizes in at_once.items()} == {"doubled": FILES, "kept": FILES}
    monkeypatch.setattr(frames.FrameBuilder, "_together", lambda *given: None)
    assert made(project, "slow") == quick
    assert [files for _, _, _, files in quick["kept"]] == [1] * FILES


def test_splits_of_several_files_are_read_one_by_one(project):
    for number in range(FILES, 2 * FILES):
        project.write_source(number, 10)
    records = made(project, "several")
    assert sum(rows for _, rows, _, _ in records["doubled"]) == sum(
        pq.read_metadata(path).num_rows for path in (project.settings.home_path / "lake" / "raw").glob("*.parquet")
    )
    assert [files for _, _, _, files in records["doubled"]] == [1] * FILES
