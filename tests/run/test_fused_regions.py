"""Stages whose outputs are not stored are computed along with their readers, on a real Spark server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagehold.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.model.spec_file import build_pipeline
from stagehold.run.local_run import run_locally
from stagehold.run.planning import RunRequest
from stagehold.settings import Settings

pytestmark = pytest.mark.spark

FILES, ROWS = 4, 25
JOBS = '''
import os
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from stagehold import stage

@stage
def numbers(ctx, source):
    return source.withColumn("colour", F.col("number") % 7)

@stage
def costly(ctx, numbers):
    """Leaves a mark for every row that it computes."""
    marks = ctx.params["marks"]

    def marked(number):
        with open(marks, "ab", buffering=0) as file:
            file.write(b".")
        return number * 2

    return numbers.withColumn("number", F.udf(marked, LongType())("number"))

@stage
def even(ctx, costly):
    return costly.where(F.col("number") % 4 == 0)

@stage
def odd(ctx, costly):
    return costly.where(F.col("number") % 4 != 0)

@stage
def colours(ctx, costly):
    return costly.groupBy("colour").agg(F.sum("number").alias("total"), F.lit(len(ctx.partitions)).alias("together"))
'''


@pytest.fixture
def settings(tmp_path: Path, spark_remote: str) -> Settings:
    (tmp_path / "fused_jobs.py").write_text(JOBS)
    settings = Settings(home=str(tmp_path), project=str(tmp_path), suites=str(tmp_path), spark_remote=spark_remote, spark_cores=1)
    for number in range(FILES):
        path = Path(settings.lake_uri) / "raw" / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"number": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())}), path)
    return settings


@pytest.fixture
def run(settings: Settings) -> Callable[..., dict[str, tuple[PartitionRecord, ...]]]:
    """Runs a pipeline of `numbers`, `costly` with an output of some type, and readers of it; gives what was recorded."""

    def run(kind: str, **readers: object) -> dict[str, tuple[PartitionRecord, ...]]:
        inputs = {"even": "forward", "odd": "forward", "colours": {"exchange": "keyed", "key": "colour"}}
        declared = {
            "numbers": {"job": "fused_jobs:numbers", "source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}},
            "costly": {"job": "fused_jobs:costly", "inputs": {"numbers": "forward"}, "output": {"type": kind}},
        } | {name: {"job": f"fused_jobs:{name}", "inputs": {"costly": inputs[name]}, **facts} for name, facts in readers.items()}
        pipeline = build_pipeline(
            {
                "pipeline": kind,
                "checkpoint": {"interval": "100ms"},
                "params": {"marks": str(settings.home_path / kind)},
                "stages": declared,
            },
            project=Path(settings.project),
            suites=Path(settings.suites),
        )
        run_locally(RunRequest(pipeline, f"run of {kind}", "i", {}), settings, print)
        with Ledger.open(settings.ledger_url) as ledger:
            return dict(ledger.partitions.newest_of(kind, "i"))

    return run


def marks(settings: Settings, kind: str) -> int:
    return (settings.home_path / kind).stat().st_size


def test_a_bounded_output_is_computed_once_for_all_its_readers(settings, run):
    once = run("pipelined_bounded", even={}, odd={}, colours={"partitions": 3})
    assert marks(settings, "pipelined_bounded") == FILES * ROWS
    again = run("pipelined", even={}, odd={}, colours={"partitions": 3})
    assert marks(settings, "pipelined") == 3 * FILES * ROWS
    assert {name: [record.fingerprint for record in records] for name, records in once.items()} == {
        name: [record.fingerprint for record in records] for name, records in again.items()
    }
    assert {record.wave for record in once["even"]} == {1, 2}  # forward all the way: waves as ever
    assert {record.wave for record in once["colours"]} == {1}  # every partition needs all of it
    assert sum(record.rows for record in once["even"] + once["odd"]) == FILES * ROWS
    assert sum(record.rows for record in once["colours"]) == 7
