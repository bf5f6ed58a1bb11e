"""What checkpoints cost: a part of a run's time, and the next one after a wave when many partitions are on record.

    python bench/checkpoint.py [SCALE] [RUNS]

First the sample runs with a checkpoint every two seconds, on a warm server: measured is the processor time of the
thread that takes them and polls the ledger, the seconds that attempts spend between their waves for them, and the
seconds of the checkpoint at the end, all against the seconds of the run. Then a checkpoint after one wave of 20
partitions, beside 1,000 recorded ones and beside 100,000, alternately. Writes results/checkpoint.json, and ends with 1
if a limit is missed: 1 % of the run for each checkpoint, and 3 times as long beside 100,000. The defaults are scale 1
and 3 runs.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from worlds.recorded_run import RecordedRun

from stagehold.chronicle.chronicle import open_ledger
from stagehold.local.demo.sample import make_sample
from stagehold.run.checkpoints.checkpoint_answers import Answers
from stagehold.run.checkpoints.coordination import Coordination
from stagehold.run.here import region
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import spark_server
from stagehold.spec.loading.loader import find_pipeline

RESULTS = Path(__file__).parent / "results" / "checkpoint.json"
PIPELINE = "shipping_priority"
MOST_OF_A_RUN, TIMES_FOR_MANY = 0.01, 3.0
FEW, MANY, WAVES = 1_000, 100_000, 15


def main() -> int:
    scale, runs = (float(sys.argv[1]) if len(sys.argv) > 1 else 1.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    with tempfile.TemporaryDirectory() as folder:
        shares = _shares_of_runs(Path(folder), scale, runs)
        seconds = _after_a_wave(Path(folder))
    share = statistics.median(share["share of each"] for share in shares)
    everything = statistics.median(share["share"] for share in shares)
    medians = {partitions: statistics.median(some) for partitions, some in seconds.items()}
    times = medians[MANY] / medians[FEW]
    print(f"a checkpoint takes {share:.2%} of a run, at most {MOST_OF_A_RUN:.0%}; all that it took {everything:.2%}")
    print(f"the next one after a wave: {medians[FEW]:.3f} s beside {FEW:,}, {medians[MANY]:.3f} s beside {MANY:,}")
    print(f"which is {times:.1f} times, at most {TIMES_FOR_MANY:.0f}")
    _write(scale, shares, seconds)
    return 0 if share <= MOST_OF_A_RUN and times <= TIMES_FOR_MANY else 1


def _shares_of_runs(folder: Path, scale: float, runs: int) -> list[dict[str, float]]:
    settings = replace(load_settings(), home=f"{folder}/home", spark_port=15115, pipelines=_pipelines(folder))
    make_sample(Path(settings.lake_uri), scale)
    with spark_server(settings):
        _run(settings, "before")
        return [_share_of_run(settings, f"run-{number}") for number in range(runs)]


def _pipelines(folder: Path) -> str:
    (folder / "pipelines").mkdir()
    declared = yaml.safe_load((Path(load_settings().pipelines) / f"{PIPELINE}.yaml").read_text())
    del declared["wave"]  # the sample's own waves are short, so that the demo can fail half-way
    declared["checkpoint"] = {"interval": "2s", "retained": 3}
    (folder / "pipelines" / f"{PIPELINE}.yaml").write_text(yaml.safe_dump(declared))
    return f"{folder}/pipelines"


def _share_of_run(settings: Settings, interval: str) -> dict[str, float]:
    took: dict[str, float] = defaultdict(float)
    started = time.perf_counter()
    with _timed(took):
        _run(settings, interval)
    seconds = time.perf_counter() - started
    with open_ledger(settings) as ledger:
        taken = len(ledger.checkpoints.of_run(f"bench/{interval}"))
    share = sum(took.values()) / seconds
    found = {"seconds": seconds, "checkpoints": taken, **took, "share": share, "share of each": share / taken}
    print({name: round(value, 4) for name, value in found.items()}, flush=True)
    return found


def _run(settings: Settings, interval: str) -> None:
    pipeline = find_pipeline(PIPELINE, settings)
    run_locally(RunRequest(pipeline, f"bench/{interval}", interval, dict(pipeline.params)), settings, _quiet)


@contextmanager
def _timed(took: dict[str, float]) -> Iterator[None]:
    """The thread works beside Spark, so what it takes away is its processor time."""

    def counting(name: str, owner: Any, method: str, clock: Callable[[], float]) -> Any:
        real = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            before = clock()
            try:
                return real(*arguments, **options)
            finally:
                took[name] += clock() - before

        return mock.patch.object(owner, method, timed)

    with ExitStack() as stack:
        stack.enter_context(counting("coordinator", Coordination, "_run", time.thread_time))
        stack.enter_context(counting("between waves", Answers, "at_boundary", time.perf_counter))
        stack.enter_context(counting("at the end", region, "leave_checkpoint", time.perf_counter))
        yield


def _after_a_wave(folder: Path) -> dict[int, list[float]]:
    places = {partitions: RecordedRun(folder / str(partitions), partitions) for partitions in (FEW, MANY)}
    found: dict[int, list[float]] = defaultdict(list)
    for wave in range(WAVES):
        for partitions, place in places.items():
            place.end_wave(wave)
            started = time.perf_counter()
            place.take()
            found[partitions].append(time.perf_counter() - started)
    return found


def _quiet(line: str) -> None:
    """Progress is for people."""


def _write(scale: float, shares: list[dict[str, float]], seconds: dict[int, list[float]]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "scale": scale,
        "runs": shares,
        "seconds after a wave, beside so many partitions": seconds,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
