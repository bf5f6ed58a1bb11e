"""What the pinned Spark prints of ordinary functions is understood, in either direction."""

from __future__ import annotations

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from jobs import tpch
from stagehold.errors import KeyMayBeNull
from stagehold.plan.isolation.tree import GivenInput
from stagehold.plan.isolation.verdict import Isolation
from stagehold.run.functions.isolation import judged, marked
from stagehold.run.functions.stage_call import StageCall, WatchedContext
from stagehold.spec.pipeline import Exchange, Input, Stage

pytestmark = pytest.mark.spark

LEFT = "id long, v long, name string, items array<int>"
RIGHT = "id int, w long"
FIXED = "v long, title string"
SHIPPING = ("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
ORDERS = ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority")


def stage_of(*key: str) -> Stage:
    edge = Input(stage="left", exchange=Exchange.KEYED, key=key)
    return Stage(name="s", job="m:f", inputs=(edge,), partitions=2, max_parallelism=128, key=key)


def call_of(frame: DataFrame, inputs: dict[str, DataFrame]) -> StageCall:
    return StageCall(WatchedContext("p", "s", "i", None, (0,), 0), tuple(inputs.values()), frame, frame)


@pytest.fixture
def judge(spark):
    """What is found of a function of three inputs: two keyed ones and one that is broadcast."""
    schemas = {"left": LEFT, "right": RIGHT, "fixed": FIXED}
    given = [
        GivenInput("left", ("id",), {"id": "bigint"}),
        GivenInput("right", ("id",), {"id": "int"}),
        GivenInput("fixed", None),
    ]

    def found(function) -> Isolation:
        frames = marked({name: spark.createDataFrame([], schema) for name, schema in schemas.items()})
        frame: DataFrame = function(**frames)
        return judged(stage_of("id"), call_of(frame, frames), given, frame.columns)

    return found


def sql(query: str):
    return lambda left, right, fixed: left.sparkSession.sql(query, left=left, right=right, fixed=fixed)


def total(values: pd.Series) -> int:
    return int(values.sum())


def batch(values: pd.Series) -> pd.Series:
    return values


def plain(value: int) -> int:
    return value


def by_id():
    return Window.partitionBy("id").orderBy("v")


TOGETHER = {
    "join on columns": lambda left, right, fixed: left.join(right, left.id == right.id).select(left.id, "v", "w"),
    "join using": lambda left, right, fixed: left.join(right, "id"),
    "full join using": lambda left, right, fixed: left.join(right, "id", "full"),
    "full join, coalesced": lambda left, right, fixed: left.join(right, left.id == right.id, "full").select(
        F.coalesce(left.id, right.id).alias("id"), "w"
    ),
    "left join": lambda left, right, fixed: left.join(right, left.id == right.id, "left").select(left.id, right.w),
    "semi and anti join": lambda left, right, fixed: left.join(right, "id", "semi").join(
        right.where("w > 3"), "id", "anti"
    ),
    "joined with itself": lambda left, right, fixed: left.join(
        left.groupBy("id").agg(F.max("v").alias("most")), "id"
    ).join(left.withColumnRenamed("v", "other").select("id", "other"), "id"),
    "null-safe join": lambda left, right, fixed: left.join(right, left.id.eqNullSafe(right.id)).select(left.id, "w"),
    "broadcast input": lambda left, right, fixed: left.join(F.broadcast(fixed), "v", "left"),
    "broadcast input, crossed and cut": lambda left, right, fixed: left.select("id").crossJoin(
        fixed.orderBy("v").limit(3)
    ),
    "rows of the function": lambda left, right, fixed: left.join(
        left.sparkSession.createDataFrame([(1, "x")], "id long, text string"), "id"
    ),
    "aggregate": lambda left, right, fixed: left.groupBy("id", F.col("v") % 2).agg(F.sum("v"), F.countDistinct("name")),
    "pivot": lambda left, right, fixed: left.groupBy("id").pivot("v", [1, 2]).agg(F.sum("v")),
    "window": lambda left, right, fixed: left.withColumn("place", F.row_number().over(by_id())).where("place = 1"),
    "window and aggregate": lambda left, right, fixed: (
        left.groupBy("id", "v").count().withColumn("of", F.sum("count").over(by_id()))
    ),
    "distinct": lambda left, right, fixed: left.select("id", "name").distinct(),
    "no duplicates": lambda left, right, fixed: left.dropDuplicates(["id", "v"]),
    "union": lambda left, right, fixed: left.select("id", "v").unionByName(right.withColumnRenamed("w", "v")),
    "union, grouped": lambda left, right, fixed: left.select("id", "v").union(right).groupBy("id").agg(F.sum("v")),
    "except and intersect": lambda left, right, fixed: (
        left.select("id").exceptAll(right.select("id")).intersect(left.select("id"))
    ),
    "explode": lambda left, right, fixed: left.select("id", F.explode("items").alias("item")),
    "unpivot": lambda left, right, fixed: left.withColumn("u", F.col("v") + 1).unpivot(
        ["id"], ["v", "u"], "name", "value"
    ),
    "expressions": lambda left, right, fixed: left.select(
        "id",
        F.when(F.col("v") > 1, "a").otherwise("b").alias("c"),
        F.concat_ws(", ", "name", F.lit("x")),
        F.transform("items", lambda x: x + 1),
    ),
    "python function": lambda left, right, fixed: left.withColumn("v", F.udf(plain, LongType())("v")),
    "pandas aggregate": lambda left, right, fixed: left.groupBy("id").agg(
        F.pandas_udf(total, LongType())("v").alias("v")
    ),
    "order and layout": lambda left, right, fixed: (
        left.repartition(3, "v").sortWithinPartitions("v").orderBy("v").coalesce(1).hint("merge")
    ),
    "missing values": lambda left, right, fixed: left.na.fill({"name": "-"}).na.drop(subset=["v"]),
    "sql": sql("""
        WITH newest AS (SELECT id, max(v) AS v FROM {left} GROUP BY id)
        SELECT n.id, n.v, r.w, f.title FROM newest n, {right} r LEFT JOIN {fixed} f ON f.v = r.w
        WHERE n.id = r.id AND r.w > 3 AND n.v IN (SELECT v FROM {fixed})"""),
    "sql, having and lateral view": sql(
        "SELECT id, e, count(*) FROM {left} LATERAL VIEW explode(items) t AS e GROUP BY id, e HAVING max(v) > 2"
    ),
    "sql, grouping sets with the key": sql("SELECT id, v, count(*) FROM {left} GROUP BY id, GROUPING SETS ((v), ())"),
}


@pytest.mark.parametrize("function", TOGETHER.values(), ids=TOGETHER.keys())
def test_ordinary_functions_are_seen_to_keep_keys_apart(judge, function):
    assert judge(function) == Isolation()


APART = {
    "cross join": (lambda left, right, fixed: left.crossJoin(right.select("w")), "Join Cross"),
    "join by something else": (
        lambda left, right, fixed: left.join(right, left.v == right.w).select(left.id),
        "Join Inner",
    ),
    "join by text": (lambda left, right, fixed: left.join(right, left.name == right.id).select(left.id), "Join Inner"),
    "join by a coarser key": (
        lambda left, right, fixed: left.join(right, left.id.cast("int") == right.id).select(left.id),
        "Join Inner",
    ),
    "join by the opposite": (
        lambda left, right, fixed: left.join(right, -left.id == right.id).select(left.id),
        "Join Inner",
    ),
    "everything": (lambda left, right, fixed: left.agg(F.max("id").alias("id")), "Aggregate"),
    "rollup": (lambda left, right, fixed: left.rollup("id", "v").count(), "Aggregate"),
    "groups by something else": (
        lambda left, right, fixed: left.groupBy("v").agg(F.max("id").alias("id")),
        "Aggregate",
    ),
    "ranks of all": (
        lambda left, right, fixed: left.withColumn("place", F.row_number().over(Window.orderBy("id"))),
        "Window",
    ),
    "limit": (lambda left, right, fixed: left.orderBy("id").limit(3), "LocalLimit"),
    "sample": (lambda left, right, fixed: left.sample(0.5, seed=1), "Sample"),
    "pandas function of batches": (
        lambda left, right, fixed: left.withColumn("v", F.pandas_udf(batch, LongType())("v")),
        "the Python function batch",
    ),
    "pandas function of partitions": (
        lambda left, right, fixed: left.mapInPandas(lambda rows: rows, LEFT),
        "MapInPandas",
    ),
    "pandas function of groups": (
        lambda left, right, fixed: left.groupBy("id").applyInPandas(lambda rows: rows, LEFT),
        "FlatMapGroupsInPandas",
    ),
    "pandas function of two groups": (
        lambda left, right, fixed: left.groupBy("id").cogroup(right.groupBy("id")).applyInPandas(lambda a, b: a, LEFT),
        "FlatMapCoGroupsInPandas",
    ),
    "rows that Spark keeps": (
        lambda left, right, fixed: left.groupBy("v").agg(F.max("id").alias("id")).localCheckpoint(eager=False),
        "LogicalRDD",
    ),
    "a constant like an attribute": (
        lambda left, right, fixed: left.withColumn("v", F.lit("id#1L")),
        "a name or a constant",
    ),
    "a constant of two lines": (
        lambda left, right, fixed: left.withColumn("v", F.lit("a\n+- b")),
        "a name or a constant",
    ),
    "a name with a bracket": (lambda left, right, fixed: left.withColumn("v)", F.lit(1)), "a name or a constant"),
    "sql with such a constant": (sql("SELECT id, 'a)' AS v FROM {left}"), "a name or a constant"),
    "sql with a subquery": (
        sql("SELECT id FROM {left} WHERE v > (SELECT avg(w) FROM {right})"),
        "a subquery in Filter",
    ),
    "sql with exists": (
        sql("SELECT id FROM {left} l WHERE EXISTS (SELECT 1 FROM {right} r WHERE r.w = l.v)"),
        "a subquery in Filter",
    ),
}


@pytest.mark.parametrize(("function", "blamed"), APART.values(), ids=APART.keys())
def test_functions_that_may_mix_keys_are_seen_to_need_calls_of_their_own(judge, function, blamed):
    assert judge(function).blame[0].startswith(blamed)


@pytest.mark.parametrize("kind", ["right", "full"])
def test_a_key_that_an_outer_join_leaves_empty_is_refused(judge, kind):
    with pytest.raises(KeyMayBeNull, match=r'F.coalesce\(left.id, right.id\).alias\("id"\)'):
        judge(lambda left, right, fixed: left.join(right, left.id == right.id, kind).select(left.id, "v", "w"))


def test_a_wide_frame_is_seen_whole(spark):
    wide = marked({"left": spark.createDataFrame([], ", ".join(f"c{number} int" for number in range(60)))})
    alike = wide["left"].dropDuplicates(["c59"])
    assert judged(stage_of("c59"), call_of(alike, wide), [GivenInput("left", ("c59",))], alike.columns) == Isolation()


def test_the_sample_pipeline_computes_a_wave_at_once(spark):
    lines = marked(
        {
            "orders_by_customer": spark.createDataFrame(
                [], "o_orderkey long, o_custkey long, o_orderdate date, o_shippriority int"
            ),
            "lineitem": spark.createDataFrame(
                [], "l_orderkey long, l_extendedprice decimal(15,2), l_discount decimal(15,2)"
            ),
        }
    )
    given = [GivenInput("orders_by_customer", ("o_orderkey",)), GivenInput("lineitem", ("l_orderkey",))]
    assert (
        judged(stage_of("l_orderkey"), call_of(tpch.shipping_priority(None, **lines), lines), given, SHIPPING)
        == Isolation()
    )
    orders = marked({"customer": spark.createDataFrame([], "c_custkey long"), "orders": lines["orders_by_customer"]})
    given = [GivenInput("customer", ("c_custkey",)), GivenInput("orders", ("o_custkey",))]
    assert (
        judged(stage_of("o_custkey"), call_of(tpch.orders_by_customer(None, **orders), orders), given, ORDERS)
        == Isolation()
    )
