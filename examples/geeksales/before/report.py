"""The program of geeksales' README, without its pictures: what it computes is written, for each day.

`PYTHONPATH=src spark-submit before/report.py 2026-11-20 SALES_FOLDER OUTPUT_FOLDER`
"""

import sys

from geeksales import spark_utils

day, sales, output = sys.argv[1:]
spark = spark_utils.create_spark_session("Sales Analysis")
df = spark.read.csv(f"{sales}/day={day}/*.csv", header=True, inferSchema=True)
df_with_metrics = spark_utils.add_sales_metrics(df)
df_with_metrics.write.mode("overwrite").parquet(f"{output}/orders/day={day}")
summary = spark_utils.get_sales_summary(df_with_metrics)
summary.write.mode("overwrite").parquet(f"{output}/regions/day={day}")
spark.stop()
