"""Functions of a pipeline in which two branches need nothing of each other; copied into a project of their own."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage


@stage
def left(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.select("number", (F.col("number") % 7).alias("colour"))


@stage
def doubled(ctx: StageContext, left: DataFrame) -> DataFrame:
    return left.withColumn("number", F.col("number") * 2)


@stage
def right(ctx: StageContext, source: DataFrame) -> DataFrame:
    if ctx.params["broken"]:
        os.kill(os.getpid(), ctx.params["broken"])
    return source.select((F.col("number") % 7).alias("colour"))


@stage
def totals(ctx: StageContext, doubled: DataFrame, right: DataFrame) -> DataFrame:
    sums = doubled.groupBy("colour").agg(F.sum("number").alias("total"))
    return sums.join(right.groupBy("colour").agg(F.count("*").alias("numbers")), "colour")
