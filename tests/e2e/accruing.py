"""A stage of the pipeline `accrued`, which keeps what the days before came to."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage


@stage
def daily_orders(ctx: StageContext, source: DataFrame) -> DataFrame:
    """All days are read, and one of them is taken."""
    return source.where(F.col("day") == ctx.interval).select("o_orderkey", "o_custkey", "o_totalprice")
