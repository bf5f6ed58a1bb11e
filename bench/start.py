"""A cold run, and resumes behind a kill at 90 %, of the sample: this code, other code and plain PySpark, in turns.

Cold is from `exec` of Python to its end, with no server before. Then the run of another interval is killed (SIGKILL)
behind the last wave but one stage, and `stagehold run` goes on at once: once the server and its keeper were killed,
too, once only the command was. Plain PySpark stores only the answer. ``python bench/start.py [--before TREE]
[--scale 1] [--pairs 5]`` writes results/start.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import yaml

from stagehold.local.demo.sample import make_sample
from stagehold.settings import PROJECT

RESULTS = Path(__file__).parent / "results" / "start.json"
PIPELINE, KILLED_IN = "shipping_priority", "shipping_priority"
PORT = 15119
WAIT_SECONDS = 120.0
KILL = """
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import load_settings
inject(load_settings().home_path, Point.AFTER_RECORD, "{stage}", 1, FaultAction.KILL)
"""
PLAIN = """
import sys
from pyspark.sql import SparkSession
from jobs import tpch
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
read = lambda table: spark.read.parquet(f"{sys.argv[1]}/raw/{table}")
of_customers = tpch.orders_by_customer(None, tpch.customer(None, read("customer")), tpch.orders(None, read("orders")))
waiting = tpch.shipping_priority(None, of_customers, tpch.lineitem(None, read("lineitem")))
tpch.top_orders(None, waiting).write.mode("overwrite").parquet(f"{sys.argv[1]}/by_hand")
"""


@dataclass
class Tree:
    """A checkout of the code, with a home and intervals of its own."""

    folder: Path
    home: Path
    days: Iterator[int] = field(default_factory=count)
    peaks: list[int] = field(default_factory=list)  # megabytes that each command took at most

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": self.home, "PIPELINES": self.home / "pipelines", "PROJECT": self.folder, "SPARK_PORT": PORT}
        paths = os.pathsep.join(map(str, (self.folder / "include", self.folder)))
        return {**os.environ, "PYTHONPATH": paths, **{f"STAGEHOLD_{name}": str(text) for name, text in own.items()}}

    def prepare(self, raw: Path, wave: str, partitions: int | None = None) -> None:
        """Make the home, whose sample lies in ``raw``.

        :param partitions: into how many all stages but the last are cut, if not as the sample declares it.
        """
        (self.home / "lake").mkdir(parents=True)
        (self.home / "lake" / "raw").symlink_to(raw)
        declared = yaml.safe_load((self.folder / "include" / "pipelines" / f"{PIPELINE}.yaml").read_text())
        for stage in declared["stages"].values() if partitions else ():
            if "source" in stage:
                stage["source"]["splits"] = partitions
            elif "partitions" in stage:
                stage["partitions"] = partitions
        (self.home / "pipelines").mkdir()
        text = yaml.safe_dump({**declared, "wave": wave})
        (self.home / "pipelines" / f"{PIPELINE}.yaml").write_text(text)

    def python(self, code: str) -> None:
        subprocess.run([sys.executable, "-c", code], env=self.environment, check=True, timeout=WAIT_SECONDS)

    def run(self, interval: str, word: str = "run") -> tuple[int, float]:
        command = [sys.executable, "-m", "stagehold", word, PIPELINE, "--interval", interval, "--json"]
        began, nothing = time.perf_counter(), subprocess.DEVNULL
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(process.pid, 0)
        seconds, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        self.peaks.append(usage.ru_maxrss // 1024)
        return process.returncode, seconds

    def interval(self) -> str:
        return f"{date(2026, 1, 1) + timedelta(days=next(self.days))}"

    def server(self) -> tuple[int, ...]:
        """The processes of the server that was started last, by the file that every version of the code keeps."""
        with suppress(FileNotFoundError):
            state = json.loads((self.home / "spark" / "server.json").read_text())
            return (state["keeper_pid"], state["pid"])
        return ()

    def await_no_server(self) -> None:
        """What goes on behind one command must not slow down the next."""
        while any(_is_alive(pid) for pid in self.server()):
            time.sleep(0.1)

    def cold(self) -> float:
        self.await_no_server()
        return succeeded(self.run(self.interval()))

    def resumed(self, *, server_too: bool) -> float:
        self.await_no_server()
        self.python(KILL.format(stage=KILLED_IN))
        interval = self.interval()
        code, _ = self.run(interval)
        assert code == -signal.SIGKILL, code
        if server_too:
            for pid in self.server():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return succeeded(self.run(interval))


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="a checkout of the code to compare with")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--wave", default="5s")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_sample(folder / "lake", asked.scale)
        trees = {"now": Tree(PROJECT, folder / "now")}
        if asked.before:
            trees["before"] = Tree(asked.before.absolute(), folder / "before")
        for tree in trees.values():
            tree.prepare(folder / "lake" / "raw", asked.wave)
            tree.cold()  # so that its waves need not find out how long partitions take
        measured: list[dict[str, float]] = []
        for _ in range(asked.pairs):
            measured.append(_one(trees, folder / "lake"))
            _show(measured, vars(asked))


def _one(trees: dict[str, Tree], lake: Path) -> dict[str, float]:
    found = {}
    for name, tree in trees.items():
        found[f"{name}: cold"] = tree.cold()
        found[f"{name}: everything killed"] = tree.resumed(server_too=True)
        found[f"{name}: command killed"] = tree.resumed(server_too=False)
        tree.await_no_server()
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT / 'include'}{os.pathsep}{PROJECT}"}
    subprocess.run([sys.executable, "-c", PLAIN, str(lake)], env=environment, check=True, capture_output=True)
    found["plain PySpark"] = time.perf_counter() - began
    print({name: round(seconds, 1) for name, seconds in found.items()}, flush=True)
    return found


def succeeded(run: tuple[int, float]) -> float:
    code, seconds = run
    if code:
        raise RuntimeError(f"exit code {code}")
    return seconds


def _show(measured: list[dict[str, float]], asked: dict[str, object]) -> None:
    def middle(above: str, below: str) -> float:
        return statistics.median(one[above] / one[below] for one in measured)

    ratios = {"cold run against plain PySpark": middle("now: cold", "plain PySpark")}
    for kill in ("everything killed", "command killed"):
        ratios[f"{kill}, against a cold run"] = middle(f"now: {kill}", "now: cold")
    if asked["before"]:
        for what in ("cold", "everything killed", "command killed"):
            ratios[f"{what}, now against before"] = middle(f"now: {what}", f"before: {what}")
    facts = {"machine": platform.platform(), "cores": os.cpu_count(), "at": datetime.now(UTC).isoformat()}
    facts |= {"scale": str(asked["scale"]), "wave": str(asked["wave"])}
    RESULTS.write_text(json.dumps({**facts, "medians of ratios": ratios, "seconds": measured}, indent=2) + "\n")
    print(json.dumps(ratios, indent=2), flush=True)


if __name__ == "__main__":
    main()
