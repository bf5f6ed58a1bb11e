"""A failure-free run of the sample against one PySpark job that writes the same tables, side by side.

Cold: from the start of both processes, engines included. Second and fourth: later runs in the same processes, whose
engines are warm; both are reported, since either side gets faster for some runs. The pipeline itself is not new: it has
run once, so its waves are not small ones that find out how long partitions take; that first run is timed by itself.
Prints the ratio of every pair and its median, says where the time of five warm runs went, and writes
results/overhead.json. ``python overhead.py [SCALE] [PAIRS]``; the defaults are 1 and 5.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.ledger.database.engine import Database
from stagehold.local.demo.sample import make_sample
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.run.stage.spark_engine import SparkStageSession
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import spark_server
from stagehold.spec.loading.loader import find_pipeline

RESULTS = Path(__file__).parent / "results" / "overhead.json"
HAND_WRITTEN = Path(__file__).parent / "hand_written.py"
PIPELINE = "shipping_priority"
WARM = {"second": 1, "fourth": 3}  # which of a process's runs
RUNS = 4
SHARES_OF = 5  # runs
OUR_OWN = ("fingerprint and metrics", "ledger, reading", "ledger, writing")


def main() -> None:
    scale, pairs = (float(sys.argv[1]) if len(sys.argv) > 1 else 1.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(
            load_settings(), home=f"{folder}/home", spark_port=15113, pipelines=pipelines_in(Path(folder))
        )
        make_sample(Path(settings.lake_uri), scale)
        very_first = seconds_of(lambda: run_cold(settings, "very-first"))
        measured = [pair(settings, Path(folder), number) for number in range(pairs)]
        shares = where_time_goes(settings)
    show(scale, very_first, measured, shares)


def pipelines_in(folder: Path) -> str:
    """The sample with waves of the usual length: its own are as short as can be, so that the demo can fail half-way."""
    (folder / "pipelines").mkdir()
    declared = yaml.safe_load((Path(load_settings().pipelines) / f"{PIPELINE}.yaml").read_text())
    del declared["wave"]
    (folder / "pipelines" / f"{PIPELINE}.yaml").write_text(yaml.safe_dump(declared))
    return f"{folder}/pipelines"


def pair(settings: Settings, folder: Path, number: int) -> dict[str, float]:
    """One run of each kind, one right after the other."""
    found = {"ours cold": seconds_of(lambda: run_cold(settings, f"cold-{number}"))}
    with spark_server(settings):
        ours = [seconds_of(lambda run=run: run_warm(settings, f"{number}-{run}")) for run in range(RUNS)]
    command = [sys.executable, str(HAND_WRITTEN), settings.lake_uri, f"{folder}/by-hand-{number}", str(RUNS)]
    started = time.perf_counter()
    answer = subprocess.run(command, env=environment(settings), check=True, capture_output=True)
    by_hand = json.loads(answer.stdout)
    found["by hand cold"] = time.perf_counter() - started - sum(by_hand[1:])
    for name, place in WARM.items():
        found |= {f"ours {name}": ours[place], f"by hand {name}": by_hand[place]}
    print({name: round(seconds, 1) for name, seconds in found.items()}, flush=True)
    return found


def run_cold(settings: Settings, interval: str) -> None:
    command = [sys.executable, "-m", "stagehold", "run", PIPELINE, "--interval", interval, "--json"]
    subprocess.run(command, env=environment(settings), check=True, capture_output=True)


def run_warm(settings: Settings, interval: str) -> None:
    run_locally(request(settings, interval), settings, quiet)


def environment(settings: Settings) -> dict[str, str]:
    """Without what pyspark's client leaves behind in this process:
    with it, a job of its own would look for a server.
    """
    ours = {name: text for name, text in os.environ.items() if not name.startswith("SPARK_")}
    return {**ours, **settings.environment, "PYTHONPATH": os.pathsep.join([settings.project, *sys.path])}


def seconds_of(step: Callable[[], Any]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def request(settings: Settings, interval: str) -> RunRequest:
    pipeline = find_pipeline(PIPELINE, settings)
    return RunRequest(pipeline, f"bench/{interval}", interval, dict(pipeline.params))


def quiet(line: str) -> None:
    """Progress is for people."""


def where_time_goes(settings: Settings) -> list[dict[str, float]]:
    """Seconds of some warm runs by what they were spent on; writing includes computing what is written."""
    with spark_server(settings):
        for run in range(RUNS - 1):
            run_warm(settings, f"before-shares-{run}")
        return [shares_of_run(settings, f"shares-{run}") for run in range(SHARES_OF)]


def shares_of_run(settings: Settings, interval: str) -> dict[str, float]:
    took: dict[str, float] = defaultdict(float)
    with timed(took):
        seconds = seconds_of(lambda: run_warm(settings, interval))
    return {"whole run": seconds, **took}


@contextmanager
def timed(took: dict[str, float]) -> Iterator[None]:
    """Count the seconds inside the steps of a wave, and inside every transaction on the ledger, whoever it is for."""

    def counting(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return step(*given, **named)
            finally:
                took[name] += time.perf_counter() - began

        return counted

    steps = {
        "compute and write": (SparkStageSession, "write"),
        "fingerprint and metrics": (SparkStageSession, "measure"),
        "gate": (SparkStageSession, "judge"),
        "publish": (StagedCommitter, "publish"),
    }
    with ExitStack() as patches:
        for name, (owner, step) in steps.items():
            patches.enter_context(mock.patch.object(owner, step, counting(name, getattr(owner, step))))
        for mode in ("reading", "writing"):
            patches.enter_context(
                mock.patch.object(Database, mode, clocked(getattr(Database, mode), took, f"ledger, {mode}"))
            )
        yield


busy = threading.local()


def clocked(transaction: Callable[..., Any], took: dict[str, float], name: str) -> Callable[..., Any]:
    """The same transaction; its time counts from before its connection to after its commit,
    once if others have joined it.
    """

    @contextmanager
    def counted(database: Database) -> Iterator[Any]:
        joins, busy.now = getattr(busy, "now", False), True
        began = time.perf_counter()
        try:
            with transaction(database) as connection:
                yield connection
        finally:
            busy.now = joins
            took[name] += 0 if joins else time.perf_counter() - began

    return counted


def show(scale: float, very_first: float, measured: list[dict[str, float]], shares: list[dict[str, float]]) -> None:
    ratios = {kind: [one[f"ours {kind}"] / one[f"by hand {kind}"] for one in measured] for kind in (*WARM, "cold")}
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake")}
    facts |= {"scale": scale, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    RESULTS.write_text(
        json.dumps(
            facts | {"very first run": very_first, "seconds": measured, "ratios": ratios, "warm runs": shares}, indent=2
        )
        + "\n"
    )
    for name, found in ratios.items():
        print(
            f"{name:6} ours / by hand: median {statistics.median(found):.2f}  "
            f"({', '.join(f'{ratio:.2f}' for ratio in sorted(found))})"
        )
    for name in shares[0]:
        percent = [100 * run[name] / run["whole run"] for run in shares]
        print(f"{name:24} {spread([run[name] for run in shares], 's')}  {spread(percent, '%')}")
    ours = [100 * sum(run[name] for name in OUR_OWN) / run["whole run"] for run in shares]
    print(f"{' + '.join(OUR_OWN)}: {spread(ours, '%')}")


def spread(numbers: list[float], unit: str) -> str:
    return f"{statistics.median(numbers):6.2f} {unit} ({min(numbers):.2f} to {max(numbers):.2f})"


if __name__ == "__main__":
    main()
