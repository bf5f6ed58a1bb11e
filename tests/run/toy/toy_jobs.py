"""Small stage functions for the runner's tests; copied into a project of their own."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage


@stage
def numbers(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.select("number", (F.col("number") % 7).alias("colour"))


@stage
def doubled(ctx: StageContext, numbers: DataFrame) -> DataFrame:
    """Sees one partition only: the count it adds is that partition's."""
    return numbers.crossJoin(numbers.agg(F.count("*").alias("seen"))).withColumn("number", F.col("number") * 2)


@stage
def by_wave(ctx: StageContext, doubled: DataFrame) -> DataFrame:
    return doubled.withColumn("wave_partitions", F.lit(len(ctx.partitions)))


@stage
def by_colour(ctx: StageContext, by_wave: DataFrame, numbers: DataFrame) -> DataFrame:
    sums = by_wave.groupBy("colour").agg(F.sum("number").alias("total"))
    counts = numbers.groupBy("colour").agg(F.count("*").alias("numbers"))
    return sums.join(counts, "colour").withColumn("factor", F.lit(ctx.params["factor"]))


@stage
def summary(ctx: StageContext, by_colour: DataFrame) -> DataFrame:
    return by_colour.withColumn("interval", F.lit(ctx.interval))


@stage
def events(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source


@stage
def kept(ctx: StageContext, events: DataFrame) -> DataFrame:
    return events
