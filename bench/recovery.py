"""What a resume costs after a kill at 90 % of the work, against doing all of it again.

Eight stages of 16 partitions. The worker is killed (SIGKILL) in the last stage; then the same command is run again, and
once for a new interval, which computes everything. Both are whole commands, from the start of Python to its end, on a
warm server. ``python recovery.py [ROWS] [PAIRS]`` writes results/recovery.json.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from stagehold.ledger.ledger import Ledger
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import spark_server

RESULTS = Path(__file__).parent / "results" / "recovery.json"
STAGES, PARTITIONS = 8, 16
KILL_AFTER_WAVE = 1  # of the last stage
JOBS = """
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from stagehold import StageContext, stage


@stage
def first(ctx: StageContext, source: DataFrame) -> DataFrame:
    return source.select("id", F.sha2(F.col("id").cast("string"), 256).alias("text"))
"""
LATER = """

@stage
def stage_{number}(ctx: StageContext, {before}: DataFrame) -> DataFrame:
    text = F.col("text")
    for _ in range(6):
        text = F.sha2(text, 512)
    return {before}.select("id", F.substring(text, 1, 64).alias("text"))
"""


def main() -> None:
    rows, pairs = (int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000), (int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    with tempfile.TemporaryDirectory() as folder:
        settings = write_project(Path(folder), rows)
        with spark_server(settings):
            run(settings, "warm-up")
            measured: list[dict[str, float]] = []
            for number in range(pairs):
                measured.append(pair(settings, number))
                show(rows, measured)  # every time, so that what was measured stays when somebody ends it


def write_project(folder: Path, rows: int) -> Settings:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    names = ["first", *(f"stage_{number}" for number in range(2, STAGES + 1))]
    later = [LATER.format(number=number, before=names[number - 2]) for number in range(2, STAGES + 1)]
    (folder / "chain_jobs.py").write_text("".join([JOBS, *later]))
    lines = ["pipeline: chain", "wave: 1s", "stages:", "  first:", "    job: chain_jobs:first"]
    lines += ['    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 16}', "    output: {type: blocking}"]
    for before, name in pairwise(names):
        exchange = (
            f"{{exchange: keyed, key: id}}\n    partitions: {PARTITIONS}"
            if name in ("stage_3", "stage_6")
            else "forward"
        )
        inputs = (
            f"    inputs:\n      {before}: {exchange}"
            if "keyed" in exchange
            else f"    inputs: {{{before}: {exchange}}}"
        )
        lines += [f"  {name}:", f"    job: chain_jobs:{name}", inputs, "    output: {type: blocking}"]
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "chain.yaml").write_text("\n".join(lines) + "\n")
    raw = folder / "home" / "lake" / "raw"
    raw.mkdir(parents=True)
    for part in range(PARTITIONS):
        ids = range(part * rows // PARTITIONS, (part + 1) * rows // PARTITIONS)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), raw / f"{part:02}.parquet")
    settings = load_settings()
    places = {
        "home": f"{folder}/home",
        "project": str(folder),
        "pipelines": f"{folder}/pipelines",
        "suites": f"{folder}/suites",
    }
    return Settings(**places, cache=settings.cache, spark_port=15117)


def pair(settings: Settings, number: int) -> dict[str, float]:
    """A killed run and its resume, then a run of everything."""
    interval = f"killed-{number}"
    inject(settings.home_path, Point.AFTER_RECORD, f"stage_{STAGES}", KILL_AFTER_WAVE, FaultAction.KILL)
    assert run(settings, interval)[0] == -signal.SIGKILL
    done = recorded(settings, interval)
    code, resume = run(settings, interval)
    if recorded(settings, interval) != STAGES * PARTITIONS:
        raise RuntimeError(f"{interval}: exit code {code}, {recorded(settings, interval)} partitions recorded")
    full = run(settings, f"full-{number}")[1]
    found = {
        "done before the kill": done / (STAGES * PARTITIONS),
        "resume": resume,
        "full": full,
        "ratio": resume / full,
    }
    print({name: round(value, 3) for name, value in found.items()}, flush=True)
    return found


def run(settings: Settings, interval: str) -> tuple[int, float]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "stagehold", "run", "chain", "--interval", interval, "--json"]
    ended = subprocess.run(command, env={**os.environ, **settings.environment}, capture_output=True, text=True)
    if ended.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(ended.stderr)
    return ended.returncode, time.perf_counter() - began


def recorded(settings: Settings, interval: str) -> int:
    with Ledger.open(settings.ledger_url) as ledger:
        return sum(len(records) for records in ledger.partitions.newest_of("chain", interval).values())


def show(rows: int, measured: list[dict[str, float]]) -> None:
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake")}
    facts |= {
        "rows": rows,
        "stages": STAGES,
        "partitions": PARTITIONS,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.write_text(json.dumps(facts | {"seconds": measured}, indent=2) + "\n")
    ratios = [one["ratio"] for one in measured]
    print(
        f"resume / full run: median {statistics.median(ratios):.3f}  "
        f"({', '.join(f'{ratio:.3f}' for ratio in sorted(ratios))})"
    )


if __name__ == "__main__":
    main()
