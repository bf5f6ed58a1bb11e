"""What it costs to commit a wave: staged and published by us, against an append by delta-spark with a transaction
token.

Prints medians and quartiles in seconds and ratios to the append, and writes results/commit_cost.json. The seconds mean
something only on a machine that does nothing else; the ratios are steadier.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.measure import measure
from stagehold.lake.store.location import TableLocation
from stagehold.lake.tables import ensure_table
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.sessions import open_session, release_session

RESULTS = Path(__file__).parent / "results" / "commit_cost.json"
PARTITIONS = tuple(range(8))
ROWS = 400_000
WARM_UP, REPETITIONS = 2, 9
COLUMNS = (
    "id",
    "id % 97 as k",
    "cast(id as decimal(18, 2)) as amount",
    "concat('name', id % 1000) as name",
    "date'2026-01-01' + cast(id % 100 as int) as day",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=folder, spark_port=15112)
        with spark_server(settings):
            session = str(uuid4())
            try:
                report(settings, session, Path(folder))
            finally:
                release_session(settings, session)


def report(settings: Settings, session: str, folder: Path) -> None:
    spark = open_session(settings, session)
    frame = spark.range(ROWS).selectExpr(*COLUMNS, f"cast(id % {len(PARTITIONS)} as int) as _partition")
    ours = TableLocation("bench", str(folder / "ours"), "bench", None)
    ensure_table(ours, frame.schema, Claim(1, "attempt"))
    took: dict[str, list[float]] = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = step()
        took.setdefault(name, []).append(time.perf_counter() - started)
        return result

    for number in range(1, WARM_UP + REPETITIONS + 1):
        append = (
            frame.write.format("delta")
            .partitionBy("_partition")
            .mode("append")
            .option("txnAppId", "bench")
            .option("txnVersion", number)
        )
        timed("append by delta-spark", lambda append=append: append.save(str(folder / "theirs")))
        staged = timed(
            "stage", lambda number=number: stage_frame(frame, WaveFiles(ours, "attempt", number, tuple(PARTITIONS)))
        )
        metrics = timed("measure", lambda staged=staged: measure(spark, staged, frame.schema, PARTITIONS))
        parts = tuple(
            CommittedPartition(metric.partition, metric.rows, metric.fingerprint, "", staged.files[metric.partition])
            for metric in metrics
        )
        timed(
            "publish",
            lambda number=number, parts=parts: StagedCommitter().publish(
                ours, WaveCommit("run", "bench", "attempt", 1, number, parts, len(PARTITIONS))
            ),
        )
    show(took)


def show(took: dict[str, list[float]]) -> None:
    measured = {name: seconds[WARM_UP:] for name, seconds in took.items()}
    measured["stage + measure + publish"] = [
        sum(step) for step in zip(*(measured[name] for name in ("stage", "measure", "publish")), strict=True)
    ]
    base = statistics.median(measured["append by delta-spark"])
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake")}
    shape = {
        "rows": ROWS,
        "partitions": len(PARTITIONS),
        "warm_up": WARM_UP,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.write_text(json.dumps(facts | shape | {"seconds": measured}, indent=2) + "\n")
    print(f"{ROWS} rows, {len(PARTITIONS)} partitions, {REPETITIONS} repetitions after {WARM_UP} to warm up")
    for name, seconds in measured.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        print(f"{name:28} {middle:7.3f} s  (quartiles {low:.3f} to {high:.3f})  {middle / base:5.2f} x append")


if __name__ == "__main__":
    main()
