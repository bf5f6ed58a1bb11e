"""Functions of a pipeline whose stages follow each other share by share."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage


@stage
def kept(ctx: StageContext, customer: DataFrame) -> DataFrame:
    return customer.select("c_custkey")


@stage
def counted(ctx: StageContext, kept: DataFrame) -> DataFrame:
    return kept.agg(F.count("*").alias("customers"))
