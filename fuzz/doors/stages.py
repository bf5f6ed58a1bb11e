"""The stages of the pipelines behind each door: seconds matter there, and rows do not."""

from __future__ import annotations

import time
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage

REFUSED_MONTH, SLOW_MONTH = 11, 12  # dates that the gate refuses, and that take their time
SLOW_SECONDS = 6


@stage
def drafts(ctx: StageContext, source: DataFrame) -> DataFrame:
    if date.fromisoformat(ctx.interval).month == SLOW_MONTH:
        time.sleep(SLOW_SECONDS)
    return source.select((F.col("amount") % 3).alias("k"), F.col("amount").alias("v"))


@stage
def edits(ctx: StageContext, drafts: DataFrame) -> DataFrame:
    if date.fromisoformat(ctx.interval).month == REFUSED_MONTH:
        return drafts.select("k", F.lit(None).cast("bigint").alias("v"))
    return drafts.select("k", (2 * F.col("v")).alias("v"))


@stage
def totals(ctx: StageContext, edits: DataFrame) -> DataFrame:
    return edits.groupBy("k").agg(F.sum("v").alias("v"))
