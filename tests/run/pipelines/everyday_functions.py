"""Stage functions of everyday PySpark; `RIGHT` says in plain Python what each makes of a partition's numbers."""

from __future__ import annotations

JOBS = """
import gc
import os

from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import LongType

from stagehold import stage


@stage
def plain(ctx, source):
    return source


@stage
def view_and_sql(ctx, source):
    source.createOrReplaceTempView("t")
    return source.sparkSession.sql("SELECT number + 1 AS number FROM t WHERE t.number >= 0")


@stage
def view_and_table(ctx, source):
    source.withColumn("number", F.col("number") + 1).createOrReplaceTempView("Rows")
    return source.sparkSession.table("rows")


@stage
def view_without_replace(ctx, source):
    source.createTempView("only_once")
    return source.sparkSession.read.table("only_once").select((F.col("number") + 1).alias("number"))


@stage
def global_view(ctx, source):
    source.createOrReplaceGlobalTempView("shared")
    return source.sparkSession.sql("SELECT shared.number + 1 AS number FROM global_temp.shared")


@stage
def view_in_sql(ctx, source):
    source.createOrReplaceTempView("base")
    spark = source.sparkSession
    spark.sql("CREATE OR REPLACE TEMP VIEW more (number) AS SELECT number + 1 FROM base; ")
    return spark.sql("TABLE more")


@stage
def view_in_a_loop(ctx, source):
    frame = source
    for step in range(4):
        frame.createOrReplaceTempView("t")
        frame = frame.sparkSession.sql(f"SELECT number + {step} AS number FROM t")
    frame.createOrReplaceTempView("u")
    source.createOrReplaceTempView("t")
    return source.sparkSession.sql("SELECT u.number - 5 AS number FROM u JOIN t ON u.number - 6 = t.number")


@stage
def view_given_to_two_frames(ctx, source):
    spark = source.sparkSession
    source.createOrReplaceTempView("t")
    first = spark.table("t")
    source.where("false").createOrReplaceTempView("t")
    second = spark.table("t")
    spark.catalog.dropTempView("t")
    return first.union(second).select((F.col("number") + 1).alias("number"))


@stage
def view_seen_by_the_catalog(ctx, source):
    source.createOrReplaceTempView("t")
    there = source.sparkSession.catalog.tableExists("t")
    return source.select((F.col("number") + int(there)).alias("number"))


@stage
def view_as_an_argument(ctx, source):
    source.createOrReplaceTempView("t")
    return source.sparkSession.sql("SELECT number + :more AS number FROM IDENTIFIER('t')", args={"more": 1})


@stage
def registered(ctx, source):
    spark = source.sparkSession
    spark.udf.register("more", lambda number: number + 1, LongType())
    source.createOrReplaceTempView("t")
    return spark.sql("SELECT more(number) AS number FROM t")


@stage
def registered_in_expressions(ctx, source):
    source.sparkSession.udf.register("more", lambda number: number + 1, LongType())
    return source.selectExpr("more(number) AS number")


@stage
def registered_by_sql(ctx, source):
    source.sparkSession.sql("CREATE TEMPORARY FUNCTION more(x BIGINT) RETURNS BIGINT RETURN x + 1")
    return source.selectExpr("more(number) AS number")


@stage
def registered_for_what_was_found(ctx, source):
    least = source.agg(F.min("number")).first()[0]
    source.sparkSession.udf.register("from_least", lambda number: number - least, LongType())
    return source.selectExpr("from_least(number) AS number")


@stage
def most(ctx, source):
    most = source.agg(F.max("number")).first()[0]
    return source.where(F.col("number") == most)


@stage
def counted(ctx, source):
    return source.where(F.col("number") % source.count() == 0)


@stage
def collected(ctx, source):
    kept = sorted(row.number for row in source.collect())[:3]
    return source.where(F.col("number").isin(kept))


@stage
def in_pandas(ctx, source):
    mean = int(source.toPandas()["number"].mean())
    return source.where(F.col("number") > mean)


@stage
def until_it_is_small(ctx, source):
    frame = source
    while frame.count() > 5:
        half = frame.approxQuantile("number", [0.5], 0.0)[0]
        frame = frame.where(F.col("number") > half)
    return frame


@stage
def cached(ctx, source):
    kept = source.select((F.col("number") + 1).alias("number")).cache()
    kept.count()
    return kept


@stage
def checkpointed(ctx, source):
    source.select((F.col("number") + 1).alias("number")).localCheckpoint().createOrReplaceTempView("t")
    gc.collect()
    return source.sparkSession.sql("SELECT number FROM t")


@stage
def views_kept_and_united(ctx, source):
    spark, kept = source.sparkSession, []
    for rest in (0, 1):
        part = source
        for condition in ("number < 0 OR number IS NOT NULL", f"number % 2 = {rest}"):
            part.createOrReplaceTempView("t")
            part = spark.sql(f"SELECT * FROM t WHERE {condition}")
        kept.append(part.localCheckpoint())
    both = kept[0].union(kept[1]).where("number >= 0")
    known = spark.range(1000).withColumnRenamed("id", "known")
    joined = both.join(known, both.number == known.known, "left").where("known IS NOT NULL")
    return joined.select((F.col("number") + 1).alias("number"))


@stage
def fitted(ctx, source):
    from pyspark.ml.feature import StringIndexer

    named = source.withColumn("name", F.lpad(F.col("number").cast("string"), 5, "0"))
    model = StringIndexer(inputCol="name", outputCol="place", stringOrderType="alphabetAsc").fit(named)
    return model.transform(named).select(F.col("place").cast("long").alias("number"))


@stage
def setting(ctx, source):
    spark = source.sparkSession
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return source.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def setting_by_sql(ctx, source):
    source.sparkSession.sql("SET TIME ZONE 'Asia/Tokyo'")
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return source.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def session_of_its_own(ctx, source):
    spark = SparkSession.builder.appName("mine").getOrCreate()
    spark.createDataFrame([(1,)], "one long").createOrReplaceTempView("one")
    source.createOrReplaceTempView("t")
    return spark.sql("SELECT number + one AS number FROM t CROSS JOIN one")


@stage
def named_as_before(ctx, plain):
    plain.createOrReplaceTempView("t")
    return plain.sparkSession.sql("SELECT number + 1 AS number FROM t")


@stage
def named_alike(ctx, named_as_before):
    named_as_before.where("number % 2 = 0").createOrReplaceTempView("t")
    return named_as_before.sparkSession.sql("SELECT number + 1 AS number FROM t")


@stage
def doubled_by_name(ctx, plain):
    plain.sparkSession.udf.register("f", lambda number: 2 * number, LongType())
    return plain.selectExpr("f(number) AS number")


@stage
def plus_one_by_name(ctx, doubled_by_name):
    doubled_by_name.sparkSession.udf.register("f", lambda number: number + 1, LongType())
    return doubled_by_name.selectExpr("f(number) AS number")


@stage
def setting_before(ctx, plain):
    plain.sparkSession.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return plain.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def without_setting(ctx, setting_before):
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return setting_before.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def asks_the_zone(ctx, plain):
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return plain.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def asks_the_zone_again(ctx, asks_the_zone):
    at = F.timestamp_seconds(F.lit(15 * 3600))
    return asks_the_zone.select((F.col("number") + F.dayofmonth(at) - 1).cast("long").alias("number"))


@stage
def by_environment(ctx, source):
    more = F.udf(lambda number: number + int(os.environ["STAGEHOLD_TEST_MORE"]), LongType())
    return source.select(more("number").alias("number"))


@stage
def named_by_key(ctx, plain):
    plain.createOrReplaceTempView("t")
    return plain.sparkSession.sql("SELECT number, count(*) AS rows FROM t GROUP BY number")


@stage
def named_by_key_again(ctx, named_by_key):
    named_by_key.where("number % 2 = 0").createOrReplaceTempView("t")
    evens = named_by_key.sparkSession.table("t")
    named_by_key.where("number % 2 = 1").createOrReplaceTempView("t")
    return evens.union(named_by_key.sparkSession.table("t")).where("rows = 1")


@stage
def share_of_key(ctx, plain):
    rows = plain.count()
    return plain.groupBy("number").agg((F.count("*") - rows + rows).alias("rows"))


@stage
def most_of_all(ctx, plain):
    most = plain.agg(F.max("number")).first()[0]
    return plain.where(F.col("number") == most)
"""

PLUS_ONE = lambda numbers: [number + 1 for number in numbers]  # noqa: E731
RIGHT = {
    **dict.fromkeys(
        (
            *("view_and_sql", "view_and_table", "view_without_replace", "global_view", "view_in_sql"),
            *("view_in_a_loop", "view_given_to_two_frames", "view_seen_by_the_catalog", "view_as_an_argument"),
            *("registered", "registered_in_expressions", "registered_by_sql", "cached", "setting", "setting_by_sql"),
            *("session_of_its_own", "checkpointed", "views_kept_and_united"),
        ),
        PLUS_ONE,
    ),
    "fitted": lambda numbers: [number - min(numbers) for number in numbers],
    "registered_for_what_was_found": lambda numbers: [number - min(numbers) for number in numbers],
    "most": lambda numbers: [max(numbers)],
    "counted": lambda numbers: [number for number in numbers if number % len(numbers) == 0],
    "collected": lambda numbers: sorted(numbers)[:3],
    "in_pandas": lambda numbers: [number for number in numbers if number > int(sum(numbers) / len(numbers))],
    "until_it_is_small": lambda numbers: sorted(numbers)[-3:],
}
