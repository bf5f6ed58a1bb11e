"""The sample's functions called by hand, as a user's own tests would call them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagehold import StageContext
from stagehold.local.demo.demo_run import expected_top_orders
from stagehold.local.demo.sample import make_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CONTEXT = StageContext(
    pipeline="shipping_priority", stage="", interval="once", logical_date=None, partitions=(0,), seed=1
)


def top_orders(spark: SparkSession, customer: DataFrame, orders: DataFrame, lineitem: DataFrame) -> DataFrame:
    """The whole pipeline as one chain of calls."""
    from jobs import tpch

    joined = tpch.orders_by_customer(CONTEXT, tpch.customer(CONTEXT, customer), tpch.orders(CONTEXT, orders))
    return tpch.top_orders(CONTEXT, tpch.shipping_priority(CONTEXT, joined, tpch.lineitem(CONTEXT, lineitem)))


def test_the_functions_chained_give_duckdbs_answer(spark: SparkSession, tmp_path: Path) -> None:
    make_sample(tmp_path, 0.01)
    tables = [spark.read.parquet(str(tmp_path / "raw" / table)) for table in ("customer", "orders", "lineitem")]
    answer = top_orders(spark, *tables)
    assert answer.columns == ["l_orderkey", "revenue", "o_orderdate", "o_shippriority"]
    assert [tuple(row) for row in answer.collect()] == expected_top_orders(tmp_path)


def test_filters_leave_out_what_is_on_the_day_itself(spark: SparkSession) -> None:
    day, before, after = date(1995, 3, 15), date(1995, 3, 14), date(1995, 3, 16)
    customer = spark.createDataFrame([(1, "BUILDING"), (2, "MACHINERY")], "c_custkey long, c_mktsegment string")
    orders = spark.createDataFrame(
        [(10, 1, before, 0), (11, 1, day, 0), (12, 2, before, 0), (13, 1, before, 5)],
        "o_orderkey long, o_custkey long, o_orderdate date, o_shippriority int",
    )
    price = Decimal("100.00")
    lineitem = spark.createDataFrame(
        [
            (10, price, Decimal("0.10"), after),
            (10, price, Decimal("0.00"), day),
            (11, price, Decimal("0.00"), after),
            (12, price, Decimal("0.00"), after),
        ],
        "l_orderkey long, l_extendedprice decimal(15,2), l_discount decimal(15,2), l_shipdate date",
    )
    answer = top_orders(spark, customer, orders, lineitem)
    assert [tuple(row) for row in answer.collect()] == [(10, Decimal("90.0000"), before, 0)]
