"""Frames are built without any server: what is read of them is in the message that would be sent."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LocalRelation

from stagehold.plan.determinism.operations import Kind, findings
from stagehold.run.functions.determinism import read_plan


def found(unconnected, build):
    """Names of what is found in two frames that ``build`` makes, a ? after what is not certain."""
    rows = unconnected.range(10)
    first, second = (read_plan(build(rows), [rows]).facts for _ in range(2))
    return [f"{finding.name}{'' if finding.certain else '?'}" for finding in findings(first, second, ())]


def by_id():
    return Window.partitionBy("id").orderBy("id")


IDS = ["monotonically_increasing_id", "spark_partition_id"]
CASES = {
    "nothing": (lambda rows: rows.withColumn("a", F.upper("id")).groupBy("a").agg(F.count("*"), F.max("id")), []),
    "unseeded": (lambda rows: rows.withColumn("r", F.rand()), ["rand"]),
    "seeded": (lambda rows: rows.withColumn("r", F.rand(42)), ["rand?"]),
    "inside another": (lambda rows: rows.select(F.floor(F.randn() * 10)), ["randn"]),
    "in a condition": (lambda rows: rows.where(F.rand() < 0.5), ["rand"]),
    "sampled": (lambda rows: rows.sample(0.1), ["sample"]),
    "sampled with a seed": (lambda rows: rows.sample(fraction=0.1, seed=3), ["sample?"]),
    "sampled with a seed that PySpark ignores": (lambda rows: rows.sample(0.1, seed=3), ["sample"]),
    "sampled by": (lambda rows: rows.sampleBy("id", {1: 0.5}), ["sampleBy"]),
    "split": (lambda rows: rows.randomSplit([0.5, 0.5])[0], ["sample"]),
    "shuffled": (lambda rows: rows.select(F.shuffle(F.array("id"))), ["shuffle"]),
    "uuid": (lambda rows: rows.select(F.uuid()), ["uuid"]),
    "clock": (lambda rows: rows.select(F.current_timestamp(), F.current_date(), F.now()),
        ["current_timestamp", "current_date", "now"]),
    "clock of Python": (lambda rows: rows.withColumn("at", F.lit(datetime.now())), ["the stage function"]),
    "id of Python": (lambda rows: rows.withColumn("id", F.lit(str(uuid4()))), ["the stage function"]),
    "ids": (lambda rows: rows.select(*map(F.call_function, IDS)), IDS),
    "file": (lambda rows: rows.select(F.input_file_name()), ["input_file_name?"]),
    "limit": (lambda rows: rows.limit(3), ["limit"]),
    "limit of ordered rows": (lambda rows: rows.orderBy("id").where("id > 1").drop("a").limit(3), []),
    "limit of rows ordered per task": (lambda rows: rows.sortWithinPartitions("id").limit(3), ["limit"]),
    "limit of rows shuffled since": (lambda rows: rows.orderBy("id").repartition(3).limit(3), ["limit"]),
    "offset": (lambda rows: rows.offset(3), ["offset"]),
    "duplicates": (lambda rows: rows.dropDuplicates(["id"]), ["dropDuplicates"]),
    "whole duplicates": (lambda rows: rows.distinct().dropDuplicates(), []),
    "first": (lambda rows: rows.groupBy("id").agg(F.first("id"), F.last("id")), ["first", "last"]),
    "first of a window": (lambda rows: rows.select(F.first("id").over(by_id())), ["first?"]),
    "ties": (lambda rows: rows.select(F.row_number().over(by_id()), F.rank().over(by_id())), ["row_number?"]),
    "lists": (lambda rows: rows.groupBy("id").agg(F.collect_list("id"), F.sort_array(F.collect_set("id"))),
        ["collect_list"]),
    "lists under a name": (lambda rows: rows.agg(F.sort_array(F.collect_set("id").alias("s"))), []),
    "sums": (lambda rows: rows.groupBy("id").agg(F.sum("id")), ["sum?"]),
    "rounded": (lambda rows: rows.agg(F.round(F.sum("id").cast("double"), 2)), []),
    "text": (lambda rows: rows.withColumn("r", F.expr("rand() + uuid()")).where("rand(3) < 1"),
        ["rand?", "rand", "uuid"]),
    "text inside": (lambda rows: rows.agg(F.sort_array(F.expr("collect_list(id)"))), []),
    "lambda": (lambda rows: rows.select(F.transform(F.array("id"), lambda x: x + F.rand())), ["rand"]),
    "case": (lambda rows: rows.select(F.when(F.col("id") > 1, F.rand()).otherwise(F.lit(1))), ["rand"]),
    "joined": (lambda rows: rows.join(rows.limit(2).select(F.col("id").alias("k")), F.col("id") == F.col("k")),
        ["limit"]),
    "union": (lambda rows: rows.union(rows.select(F.rand().cast("long"))), ["rand"]),
    "udf": (lambda rows: rows.select(F.udf(lambda x: x).asNondeterministic()("id")), ["udf"]),
    "deterministic udf": (lambda rows: rows.select(F.udf(lambda x: x)("id")), []),
    "call": (lambda rows: rows.select(F.call_function("uuid")), ["uuid"]),
}  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), CASES.values(), ids=CASES)
def test_what_may_differ_is_read_from_a_frame(unconnected, build, expected):
    assert sorted(found(unconnected, build)) == sorted(expected)


def test_what_is_below_the_inputs_is_not_looked_at(unconnected):
    given = unconnected.range(10).withColumn("r", F.rand()).limit(3)
    assert read_plan(given.select("r"), [given]).facts.uses == ()
    assert [use.name for use in read_plan(given.select("r"), []).facts.uses] == ["limit", "rand"]


def test_data_in_a_frame_is_part_of_its_plan(unconnected):
    def holding(value):
        return read_plan(DataFrame(LocalRelation(pa.table({"a": [value]})), unconnected), []).facts

    assert [finding.kind for finding in findings(holding(1), holding(2), ())] == [Kind.CODE]
    assert findings(holding(1), holding(1), ()) == ()
