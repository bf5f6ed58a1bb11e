"""The sample pipeline as one PySpark job that somebody wrote by hand: the same functions, tables written by
delta-spark.

``python hand_written.py LAKE OUT RUNS`` prints the seconds of each of RUNS runs as JSON; the first one has a cold
engine. Every table is cut into the 16 partitions that the pipeline has, as a job must that is to be repaired partition
by partition.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import tpch
from stagehold import StageContext
from stagehold.settings import load_settings
from stagehold.spark.server.java import jar_paths

PARTITIONS = 16
KEYS = {
    "customer": "c_custkey",
    "orders": "o_custkey",
    "lineitem": "l_orderkey",
    "orders_by_customer": "o_custkey",
    "shipping_priority": "l_orderkey",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lake")
    parser.add_argument("out")
    parser.add_argument("runs", type=int)
    parser.add_argument("--cores", type=int, default=2)
    asked = parser.parse_args()
    began = time.perf_counter()
    spark = session(asked.cores)
    seconds = []
    for run in range(asked.runs):
        run_job(spark, Path(asked.lake), Path(asked.out) / str(run))
        ended = time.perf_counter()
        seconds.append(ended - began)
        began = ended
    json.dump(seconds, sys.stdout)
    spark.stop()


def session(cores: int) -> SparkSession:
    """With the settings that Stagehold's own server has, so that only the work differs."""
    settings = load_settings()
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", settings.spark_memory)
    confs = {
        "spark.jars": ",".join(map(str, jar_paths(settings))),
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": str(cores * 2),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for name, text in confs.items():
        builder = builder.config(name, text)
    return builder.getOrCreate()


def run_job(spark: SparkSession, lake: Path, out: Path) -> None:
    raw = {name: spark.read.parquet(str(lake / "raw" / name)) for name in ("customer", "orders", "lineitem")}
    context = StageContext("hand", "written", "now", None, (), 0)

    def kept(name: str, frame: DataFrame) -> DataFrame:
        """Every stage writes its table and the next one reads it, as stages of a nightly job do."""
        path = str(out / name)
        if name in KEYS:
            frame = frame.withColumn(
                "_partition", F.pmod(F.crc32(F.col(KEYS[name]).cast("string").cast("binary")), F.lit(PARTITIONS))
            )
            frame = frame.repartitionById(PARTITIONS, F.col("_partition").cast("int"))
            frame.write.format("delta").partitionBy("_partition").save(path)
            return spark.read.format("delta").load(path).drop("_partition")
        frame.write.format("delta").save(path)
        return spark.read.format("delta").load(path)

    customer = kept("customer", tpch.customer(context, source=raw["customer"]))
    orders = kept("orders", tpch.orders(context, source=raw["orders"]))
    lineitem = kept("lineitem", tpch.lineitem(context, source=raw["lineitem"]))
    by_customer = kept("orders_by_customer", tpch.orders_by_customer(context, customer=customer, orders=orders))
    priority = kept(
        "shipping_priority", tpch.shipping_priority(context, orders_by_customer=by_customer, lineitem=lineitem)
    )
    kept("top_orders", tpch.top_orders(context, shipping_priority=priority))


if __name__ == "__main__":
    main()
