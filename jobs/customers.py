"""Stages of the sample pipeline `customer_totals`: what each customer has spent, over all days so far."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage


@stage
def daily_orders(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.select("o_orderkey", "o_custkey", "o_totalprice")


@stage
def customer_totals(ctx: StageContext, daily_orders: DataFrame) -> DataFrame:
    """Yesterday's totals and today's orders make today's totals; nothing older is read."""
    today = daily_orders.select(
        F.col("o_custkey").alias("custkey"), F.col("o_totalprice").alias("spent"), F.lit(1).alias("orders")
    )
    totals = (
        ctx.state.read("totals")
        .unionByName(today)
        .groupBy("custkey")
        .agg(F.sum("spent").cast("decimal(18,2)").alias("spent"), F.sum("orders").alias("orders"))
    )
    ctx.state.put("totals", totals)
    return totals
