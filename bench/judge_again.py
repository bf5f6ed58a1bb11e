"""What it costs to judge a thousand partitions again, beside computing them.

    python bench/judge_again.py [PARTITIONS] [RUNS]

A stage that passes TPC-H's lineitem on, in many small partitions, runs with the twelve expectations of gates.py on a
warm server. Then one limit of its suite changes and it runs again, which judges what is there and computes nothing.
Measured are the whole runs, the seconds that the gate takes in them, how many queries it asks, and how many KB the
server reads for it, as the system counts them, beside those that the files have. Writes results/judge_again.json. The
defaults are 1,000 partitions and 3 runs; each has an interval of its own.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
from bench.gates import EXPECTATIONS, JOB
from pyspark.sql.connect.dataframe import DataFrame

from stagehold.lake.commit.staging import StagedWave
from stagehold.local.demo.sample import make_sample
from stagehold.model.records import PartitionRecord
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.stage.spark_engine import SparkStageSession
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import running_server, spark_server
from stagehold.spec.loading.loader import build_pipeline

RESULTS = Path(__file__).parent / "results" / "judge_again.json"
SCALE = 0.01  # some 60 rows in each of a thousand partitions


def main() -> None:
    partitions, runs = (int(given) for given in [*sys.argv[1:], *("1000", "3")[len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory() as folder:
        settings = _project(Path(folder), partitions)
        with spark_server(settings):
            _run(settings, "to warm up", partitions)
            found = [_both(settings, f"interval {number}", partitions) for number in range(runs)]
    ratio = statistics.median(one["judged again"]["seconds"] / one["computed"]["seconds"] for one in found)
    print(f"to judge {partitions} partitions again takes {ratio:.0%} of computing and judging them")
    _write(partitions, found)


def _both(settings: Settings, interval: str, partitions: int) -> dict[str, dict[str, float]]:
    _write_suite(settings, most=50)
    computed = _run(settings, interval, partitions)
    _write_suite(settings, most=51)
    found = {"computed": computed, "judged again": _run(settings, interval, partitions)}
    for name, facts in found.items():
        print(f"{interval}, {name}:", {what: round(much, 2) for what, much in facts.items()}, flush=True)
    return found


def _project(folder: Path, partitions: int) -> Settings:
    """The rows of lineitem in one file for each partition."""
    (folder / "bench_lines.py").write_text(JOB)
    settings = replace(
        load_settings(), home=f"{folder}/home", spark_port=15115, project=str(folder), suites=str(folder)
    )
    raw = Path(settings.lake_uri) / "raw"
    make_sample(Path(settings.lake_uri), SCALE)
    rows = pq.read_table(raw / "lineitem")
    (raw / "many").mkdir()
    for number in range(partitions):
        first, end = (rows.num_rows * edge // partitions for edge in (number, number + 1))
        pq.write_table(rows.slice(first, end - first), raw / "many" / f"{number:05}.parquet")
    _write_suite(settings, most=50)
    return settings


def _write_suite(settings: Settings, *, most: int) -> None:
    expectations = [{**one, "max_value": most} if one.get("column") == "l_quantity" else one for one in EXPECTATIONS]
    Path(settings.suites, "lines.yaml").write_text(json.dumps({"suite": "lines", "expectations": expectations}))


def _run(settings: Settings, interval: str, partitions: int) -> dict[str, float]:
    source = {"kind": "parquet", "path": "${lake}/raw/many/*.parquet", "splits": partitions}
    stage = {"job": "bench_lines:lines", "source": source, "gate": "lines"}
    declared = {"pipeline": "bench", "stages": {"lines": stage}}
    pipeline = build_pipeline(declared, project=Path(settings.project), suites=Path(settings.suites))
    counted: dict[str, float] = defaultdict(float)
    started = time.perf_counter()
    with _counting(counted, settings):
        run_locally(RunRequest(pipeline, f"{interval} {time.monotonic_ns()}", interval, {}), settings, lambda _: None)
    return {"seconds": time.perf_counter() - started, **counted}


@contextmanager
def _counting(counted: dict[str, float], settings: Settings) -> Iterator[None]:
    """Waves, the seconds in which they are measured and judged, the queries that it takes, and what is read for it."""

    def timed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before, asked, read = time.perf_counter(), counted["queries of all"], _bytes_read(settings)
            try:
                return real(*arguments, **options)
            finally:
                counted["waves"] += 1
                counted["seconds of the gate"] += time.perf_counter() - before
                counted["queries of the gate"] += counted["queries of all"] - asked
                counted["KB that the gate reads"] += (_bytes_read(settings) - read) // 1024
                counted["KB of the files"] += _bytes_of(arguments[1]) // 1024

        return call

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counted["queries of all"] += 1
            return real(*arguments, **options)

        return call

    with ExitStack() as stack:
        for method in ("measure", "judge"):
            real = getattr(SparkStageSession, method)
            stack.enter_context(mock.patch.object(SparkStageSession, method, timed(real)))
        stack.enter_context(mock.patch.object(DataFrame, "collect", noted(DataFrame.collect)))
        yield


def _bytes_read(settings: Settings) -> int:
    """By the server since it began, from files or what the system keeps of them."""
    server = running_server(settings)
    assert server is not None
    return int(Path(f"/proc/{server.pid}/io").read_text().split()[1])


def _bytes_of(judged: StagedWave | Sequence[PartitionRecord]) -> int:
    if isinstance(judged, StagedWave):
        return sum(file.bytes for files in judged.files.values() for file in files)
    return sum(record.bytes for record in judged)


def _write(partitions: int, found: Sequence[Mapping[str, Mapping[str, float]]]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),  # of the last 1, 5 and 15 minutes; more than the cores means that others work as well
        "partitions": partitions,
        "runs": found,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
