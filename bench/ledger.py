"""What many attempts at once wait for the ledger: SQLite's file, PostgreSQL, and that behind pgbouncer.

    python bench/ledger.py [--attempts 50] [--seconds 30] [--pauses 0.2 0] [--behind sqlite postgresql pgbouncer]

Each attempt is a process of its own that renews its lease, appends an event, records eight partitions with a new wave
each time, and reads what is recorded, with a pause between any two of them. Prints a table of milliseconds and what
failed, and writes results/ledger.json. PostgreSQL is started here, without fsync; SQLite's file is on this disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent)]

from fuzz.crowd.connections import EVERY_SECONDS, Connections, counted  # noqa: E402
from tests.ledger.samples import event, record, run  # noqa: E402
from tests.pooler import own_pooler  # noqa: E402
from tests.postgres import own_server  # noqa: E402

from stagehold.errors import StageholdError  # noqa: E402
from stagehold.ledger import Ledger  # noqa: E402
from stagehold.model.records import Cell  # noqa: E402

RESULTS = HERE / "results" / "ledger.json"
BEHIND = ("sqlite", "postgresql", "pgbouncer")
PARTITIONS = range(8)
LEASE_SECONDS = 30.0


@dataclass
class Waited:
    """Seconds of each call of one attempt, or of several, and how often which error came."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Waited) -> None:
        for name, more in other.seconds.items():
            self.seconds.setdefault(name, []).extend(more)
        self.failed.update(other.failed)

    def call(self, name: str, work: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            work()
        except StageholdError as error:
            self.failed[type(error).__name__] += 1
        self.seconds.setdefault(name, []).append(time.monotonic() - began)


@dataclass(frozen=True)
class Load:
    attempts: int
    seconds: float
    pause: float


def attempt(url: str, load: Load, number: int) -> Waited:
    """The calls of one attempt, which begins at a moment of its own."""
    waited, random = Waited(), Random(number)
    cell = Cell("crowd", "stage", f"interval-{number}")
    with Ledger.open(url) as ledger, ledger.kept_open():
        ledger.runs.start(run(f"run-{number}", interval=cell.interval))
        lease = ledger.leases.acquire(f"attempt-{number}", "me", 10 * load.seconds + 600)
        time.sleep(random.uniform(0, 4 * load.pause))
        ends = time.monotonic() + load.seconds
        for turn in range(sys.maxsize):
            recorded = [record(partition, cell=cell, epoch=lease.epoch, wave=turn) for partition in PARTITIONS]
            calls: dict[str, Callable[[], object]] = {
                "renew a lease": partial(ledger.leases.renew, lease, LEASE_SECONDS),
                "append an event": partial(ledger.events.append, event(f"turn {turn}", f"run-{number}")),
                "record 8 partitions": partial(ledger.partitions.record, recorded, lease),
                "read what is recorded": partial(ledger.partitions.newest_of, cell.pipeline, cell.interval),
            }
            for name, work in calls.items():
                if time.monotonic() > ends:
                    return waited
                waited.call(name, work)
                time.sleep(load.pause)
    return waited


@contextmanager
def address(behind: str) -> Iterator[tuple[str, Connections]]:
    """Of an empty ledger, and how many are connected to its server; nobody is to SQLite's file."""
    with ExitStack() as stack:
        if behind == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            yield f"sqlite:///{folder}/ledger.db", Connections()
            return
        server = stack.enter_context(own_server()).url
        url = stack.enter_context(own_pooler(server)) if behind == "pgbouncer" else server
        yield url, stack.enter_context(counted(server))


def measure(behind: str, load: Load) -> dict[str, Any]:
    together = Waited()
    with address(behind) as (url, connections):
        Ledger.open(url).close()  # makes its tables
        with multiprocessing.get_context("fork").Pool(load.attempts) as pool:
            for waited in pool.map(partial(attempt, url, load), range(load.attempts), chunksize=1):
                together.add(waited)
        time.sleep(2 * EVERY_SECONDS)  # so that those who are left are counted
        found = {"most": connections.most, "left": connections.open}
    return {
        "behind": behind,
        "calls": {name: summary(seconds) for name, seconds in together.seconds.items()},
        "failed": dict(together.failed),
        "connections": found,
    }


def summary(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    hundredths = statistics.quantiles(seconds, n=100, method="inclusive")
    found = {"median": hundredths[49], "p99": hundredths[98], "most": max(seconds)}
    return {"count": len(seconds), **{name: round(1000 * value, 1) for name, value in found.items()}}


def tell(measured: dict[str, Any]) -> None:
    for name, call in measured["calls"].items():
        figures = "".join(f"{call[what]:>11}" for what in ("count", "median", "p99", "most"))
        print(f"{measured['behind']:12}{name:24}{figures}")
    failed = ", ".join(f"{count} {name}" for name, count in measured["failed"].items()) or "nothing"
    print(f"{measured['behind']:12}failed: {failed}; connections: {measured['connections']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--pauses", type=float, nargs="+", default=(0.2, 0.0))
    parser.add_argument("--behind", nargs="+", default=BEHIND, choices=BEHIND)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    measured = []
    for load in [Load(asked.attempts, asked.seconds, pause) for pause in asked.pauses]:
        print(f"{f'pauses of {load.pause} s':36}{'calls':>11}{'median ms':>11}{'p99':>11}{'most':>11}")
        for behind in asked.behind:
            measured.append({"pause": load.pause, **measure(behind, load)})
            tell(measured[-1])
    facts = {"machine": platform.platform(), "cores": os.cpu_count(), "load": os.getloadavg()}
    versions = {"sqlite": sqlite3.sqlite_version, "python": platform.python_version()}
    said = {
        **facts,
        **versions,
        "at": datetime.now(UTC).isoformat(),
        "seconds": asked.seconds,
        "attempts": asked.attempts,
        "measured": measured,
    }
    asked.results.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
