"""The same as two stages. What computes is geeksales' own, in `src/geeksales`."""

from __future__ import annotations

from geeksales import spark_utils
from pyspark.sql import DataFrame

from stagehold import StageContext, stage


@stage
def sales(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source


@stage
def orders(ctx: StageContext, sales: DataFrame) -> DataFrame:
    return spark_utils.add_sales_metrics(sales)


@stage
def regions(ctx: StageContext, orders: DataFrame) -> DataFrame:
    return spark_utils.get_sales_summary(orders)
