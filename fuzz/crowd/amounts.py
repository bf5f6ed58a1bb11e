"""The pipelines of a crowd: small ones, whose rows differ by pipeline and interval, and what is right for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stagehold import StageContext, stage

FILES, ROWS, KEYS = 24, 500, 7  # each wave has four files
STAGES = ("amounts", "totals")
PARTITIONS = FILES + 8  # of a run
PIPELINE = """\
pipeline: {name}
release: keep
wave: 100ms
params: {{times: {times}}}
stages:
  amounts:
    job: fuzz.crowd.amounts:amounts
    source: {{kind: parquet, path: "${{lake}}/raw/crowd/*.parquet", splits: 24}}
  totals:
    job: fuzz.crowd.amounts:totals
    key: k
    partitions: 8
    inputs: {{amounts: {{exchange: keyed, key: k}}}}
    output: {{type: blocking_persistent, table: marts.{name}}}
"""
RIGHT = "SELECT k, sum(amount * ? + ?)::BIGINT, count(*) FROM read_parquet(?) GROUP BY k ORDER BY k"
Row = tuple[int, int, int]


@stage
def amounts(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.select("k", (F.col("amount") * ctx.params["times"] + number_of(ctx.interval)).alias("v"))


@stage
def totals(ctx: StageContext, amounts: DataFrame) -> DataFrame:
    return amounts.groupBy("k").agg(F.sum("v").alias("total"), F.count("*").alias("counted"))


def pipelines(count: int) -> Mapping[str, str]:
    """The files of so many pipelines, by their names."""
    return {f"crowd_{number}": PIPELINE.format(name=f"crowd_{number}", times=number + 2) for number in range(count)}


def interval_of(number: int) -> str:
    return f"run-{number}"


def number_of(interval: str) -> int:
    return int(interval.removeprefix("run-"))


def lay_amounts(lake: Path) -> None:
    folder = lake / "raw" / "crowd"
    folder.mkdir(parents=True)
    for file in range(FILES):
        found = [file * ROWS + row for row in range(ROWS)]
        columns = {"k": [value % KEYS for value in found], "amount": [value * 37 % 1009 for value in found]}
        pq.write_table(pa.table(columns), folder / f"{file}.parquet")


def published(lake: Path, pipeline: str, interval: str) -> list[Row]:
    table = DeltaTable(f"{lake}/marts/{pipeline}").to_pyarrow_table(filters=[("_interval", "=", interval)])
    return sorted((row["k"], row["total"], row["counted"]) for row in table.to_pylist())


def right(lake: Path, pipeline: str, interval: str) -> list[Row]:
    """As DuckDB computes it, over a connection of its own: no two threads may share one."""
    times = int(pipeline.removeprefix("crowd_")) + 2
    with duckdb.connect() as database:
        return database.execute(RIGHT, [times, number_of(interval), f"{lake}/raw/crowd/*.parquet"]).fetchall()
