"""What it costs to see what functions do: runs of stages whose functions only plan, with this code and with another.

`python bench/row_wise.py --against CHECKOUT` runs both in turn, five pairs, on one server of this code that is
warm, prints the seconds of each run and the ratio of each pair, and writes results/row_wise.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results" / "row_wise.json"
HERE = Path(__file__).parents[1]
FILES, ROWS, PAIRS, RUNS = 32, 20_000, 5, 3
JOBS = """
from pyspark.sql import functions as F

from stagehold import stage


@stage
def read(ctx, source):
    return source.where("number % 7 <> 0").withColumn("text", F.concat(F.lit("n"), "number"))


@stage
def widened(ctx, read):
    return read.select("*", (F.col("number") * 2).alias("twice"), F.length("text").alias("letters"))


@stage
def by_key(ctx, widened):
    return widened.groupBy("letters", "number").agg(F.sum("twice").alias("twice"))
"""
STAGES: dict[str, Any] = {
    "read": {"source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}},
    "widened": {"inputs": {"read": "forward"}},
    "by_key": {"inputs": {"widened": {"exchange": "keyed", "key": "number"}}, "partitions": 8},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="a checkout with the other code")
    other = parser.parse_args().against.resolve()
    from stagehold.settings import Settings
    from stagehold.spark.server.server import spark_server

    with tempfile.TemporaryDirectory(prefix="row-wise-") as folder:
        settings = Settings(home=folder, project=folder, suites=folder, spark_port=15113, spark_cores=2)
        prepare(settings)
        with spark_server(settings):
            pairs = [(seconds(HERE, folder, f"a{n}"), seconds(other, folder, f"b{n}")) for n in range(PAIRS + 1)][1:]
    report(pairs)


def prepare(settings: Any) -> None:
    Path(settings.project, "row_wise_jobs.py").write_text(JOBS)
    raw = Path(settings.lake_uri, "raw")
    raw.mkdir(parents=True)
    for number in range(FILES):
        numbers = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
        pq.write_table(pa.table({"number": numbers}), raw / f"{number}.parquet")


def seconds(checkout: Path, folder: str, name: str) -> float:
    """The median of some runs in a process of their own, with the code of a checkout."""
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import row_wise; row_wise.once({folder!r}, {name!r})"
    environment = {**os.environ, "PYTHONPATH": str(checkout / "include")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def once(folder: str, name: str) -> None:
    from stagehold.run.here.local_run import run_locally
    from stagehold.run.planning.planning import RunRequest
    from stagehold.settings import Settings
    from stagehold.spec.loading.loader import build_pipeline

    settings = Settings(home=folder, project=folder, suites=folder, spark_port=15113, spark_cores=2)
    stages = {stage: {"job": f"row_wise_jobs:{stage}", **fields} for stage, fields in STAGES.items()}
    declared = {"pipeline": "row_wise", "wave": "200ms", "stages": stages}
    pipeline = build_pipeline(declared, project=Path(folder), suites=Path(folder))
    taken = []
    for run in range(RUNS):
        started = time.monotonic()
        run_locally(RunRequest(pipeline, f"{name}-{run}", f"{name}-{run}", {}), settings, lambda _: None)
        taken.append(time.monotonic() - started)
    print(statistics.median(taken))


def report(pairs: list[tuple[float, float]]) -> None:
    ratios = [ours / others for ours, others in pairs]
    for (ours, others), ratio in zip(pairs, ratios, strict=True):
        print(f"{ours:.2f} s, other code {others:.2f} s: {ratio:.2f}")
    print(f"median of ratios {statistics.median(ratios):.2f}")
    facts = {"when": datetime.now(UTC).isoformat(), "machine": platform.platform(), "cores": os.cpu_count()}
    raw = {**facts, "seconds": pairs, "ratios": ratios}
    RESULTS.write_text(json.dumps(raw, indent=2) + "\n")


if __name__ == "__main__":
    main()
