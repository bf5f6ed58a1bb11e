"""TPC-H query 3, the shipping priority query, as the stages of include/pipelines/shipping_priority.yaml.

Each function is ordinary PySpark: call it with frames of your own, from a test or from a script given to spark-submit.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage

SEGMENT = "BUILDING"
CUTOFF = date(1995, 3, 15)
WANTED = 10


@stage
def customer(ctx: StageContext, source: DataFrame) -> DataFrame:
    """Keys of the customers in the segment."""
    return source.where(F.col("c_mktsegment") == SEGMENT).select("c_custkey")


@stage
def orders(ctx: StageContext, source: DataFrame) -> DataFrame:
    """Orders placed before the cutoff."""
    return source.where(F.col("o_orderdate") < F.lit(CUTOFF)).select(
        "o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"
    )


@stage
def lineitem(ctx: StageContext, source: DataFrame) -> DataFrame:
    """Lines not shipped at the cutoff."""
    return source.where(F.col("l_shipdate") > F.lit(CUTOFF)).select("l_orderkey", "l_extendedprice", "l_discount")


@stage
def orders_by_customer(ctx: StageContext, customer: DataFrame, orders: DataFrame) -> DataFrame:
    """Orders of the chosen customers."""
    return orders.join(customer, orders.o_custkey == customer.c_custkey).select(
        "o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"
    )


@stage
def shipping_priority(ctx: StageContext, orders_by_customer: DataFrame, lineitem: DataFrame) -> DataFrame:
    """Revenue that waits in each order: a sum of decimals, so it does not depend on the order of the rows."""
    lines = orders_by_customer.join(lineitem, orders_by_customer.o_orderkey == lineitem.l_orderkey)
    revenue = F.sum(F.col("l_extendedprice") * (1 - F.col("l_discount"))).alias("revenue")
    return (
        lines.groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue)
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
    )


@stage
def top_orders(ctx: StageContext, shipping_priority: DataFrame) -> DataFrame:
    """The orders with the most revenue; the order key breaks ties, so that the answer is always the same."""
    return shipping_priority.orderBy(F.desc("revenue"), "o_orderdate", "l_orderkey").limit(WANTED)
