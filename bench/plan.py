"""How long planning takes: topology, regions, failover, release and the resume plan of 10,000 and 100,000
partitions.

    python bench/plan.py [--repetitions 7]

Measured is processor time, so that other work on the machine does not count, with the garbage collector off as timeit
has it: with it on, 100,000 partitions take up to two thirds longer. Every size runs in a process of its own, for its
own peak memory. Prints a table, writes results/plan.json, and ends with 1 if a limit is missed: under 1 s for 10,000
partitions, at most 12 times that for 100,000.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "include"))

from stagehold.model.partition_set import PartitionSet  # noqa: E402
from stagehold.model.records import AttemptState, Cell, PartitionRecord  # noqa: E402
from stagehold.model.standing import PartitionState  # noqa: E402
from stagehold.plan.resume.decisions import Action  # noqa: E402
from stagehold.plan.resume.planner import resume_plan  # noqa: E402
from stagehold.plan.resume.situation import Situation, StageData, StageFacts, StageOrder, StageSituation  # noqa: E402
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage  # noqa: E402
from stagehold.spec.settings.source import Source  # noqa: E402
from stagehold.topology.build import pipeline_topology  # noqa: E402
from stagehold.topology.failover import (  # noqa: E402
    FailureSituation,
    region_failover,
)
from stagehold.topology.partition_regions import (  # noqa: E402
    PartitionRegions,
    partition_regions,
    releasable_partitions,
)
from stagehold.topology.topology import Topology  # noqa: E402

SMALL, LARGE = 10_000, 100_000
SECONDS_FOR_SMALL = 1.0
TIMES_FOR_LARGE = 12.0

# stage: the inputs it reads, "forward" or "keyed", and whether its output flows; ten stages of equal width
SHAPE: dict[str, tuple[dict[str, str], bool]] = {
    "orders": ({}, False),
    "lineitem": ({}, False),
    "cleaned": ({"orders": "forward"}, True),
    "kept": ({"cleaned": "forward"}, False),
    "joined": ({"kept": "keyed", "lineitem": "keyed"}, False),
    "priced": ({"joined": "forward"}, True),
    "summed": ({"priced": "forward"}, False),
    "ranked": ({"summed": "keyed"}, False),
    "named": ({"ranked": "forward", "kept": "forward"}, False),
    "shown": ({"named": "keyed", "joined": "forward"}, False),
}


def pipeline_of(partitions: int) -> Pipeline:
    width = partitions // len(SHAPE)
    return Pipeline(
        name="bench", file="bench.yaml", stages=tuple(_stage(name, width, *shape) for name, shape in SHAPE.items())
    )


def _stage(name: str, width: int, inputs: dict[str, str], flows: bool) -> Stage:
    return Stage(
        name=name,
        job=f"jobs.bench:{name}",
        source=None if inputs else Source(kind="parquet", path="p", splits=width),
        inputs=tuple(Input(stage=stage, exchange=Exchange(exchange)) for stage, exchange in inputs.items()),
        partitions=width,
        max_parallelism=32768,
        output=Output(type=OutputType.PIPELINED if flows else OutputType.BLOCKING),
    )


def fresh_situation(pipeline: Pipeline) -> Situation:
    splits = {
        stage.name: tuple(f"split {index}" for index in range(stage.partitions if stage.source else 0))
        for stage in pipeline.stages
    }
    facts = {stage.name: StageFacts(code=stage.name, splits=splits[stage.name]) for stage in pipeline.stages}
    stages = {name: StageSituation(one) for name, one in facts.items()}
    return Situation(pipeline, stages, environment="e", params="p")


def recorded_situation(pipeline: Pipeline) -> Situation:
    """Everything is recorded, the last stage has to run again, and data that it needs on two levels is gone."""
    situation = fresh_situation(pipeline)
    for stage in pipeline.stages:
        # A stage has a key to be recorded with as soon as its inputs are recorded.
        decisions = resume_plan(situation).of(stage.name) if stage.output.type.stored else ()
        records = tuple(_record(stage, decision.partition, str(decision.key)) for decision in decisions)
        situation = situation.changed(partial(_with_records, stage.name, records))
    return situation.changed(_with_losses)


def _with_records(stage: str, records: tuple[PartitionRecord, ...], name: str, known: StageSituation) -> StageSituation:
    return replace(known, data=StageData(records)) if name == stage else known


def _with_losses(name: str, known: StageSituation) -> StageSituation:
    gone = PartitionSet([0] if name in ("kept", "named") else ())
    return replace(known, data=replace(known.data, gone=gone), order=StageOrder(forced=name == "shown"))


def _record(stage: Stage, partition: int, key: str) -> PartitionRecord:
    return PartitionRecord(
        cell=Cell("bench", stage.name, "i"),
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id="r",
        attempt_id="a",
        epoch=1,
        wave=1,
        table="t",
        version=1,
        files=(),
        rows=1,
        fingerprint="f",
        compute_key=key,
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@dataclass(frozen=True)
class Case:
    """``work`` is measured, each time with a fresh result of ``prepare``, so that nothing remembered helps it."""

    name: str
    prepare: Callable[[Pipeline], Any]
    work: Callable[[Any], int]


def finished(topology: Topology) -> dict[str, AttemptState]:
    return dict.fromkeys(topology.position, AttemptState.FINISHED)


def regions_of(pipeline: Pipeline) -> PartitionRegions:
    return partition_regions(pipeline_topology(pipeline))


def everything_restarts(regions: PartitionRegions) -> int:
    """The dearest failover: the last stage fails and everything stored is gone."""
    situation = FailureSituation(regions, finished(regions.topology), available=lambda _: False)
    return len(region_failover(situation, ["shown:0"]))


def computed(situation: Situation) -> int:
    plan = resume_plan(situation)
    return plan.count(Action.RUN) + plan.count(Action.HEAL)


CASES = (
    Case("topology", lambda pipeline: pipeline, lambda pipeline: len(pipeline_topology(pipeline).vertices)),
    Case("regions", pipeline_topology, lambda topology: len(partition_regions(topology).regions)),
    Case("failover", regions_of, everything_restarts),
    Case("release", regions_of, lambda regions: len(releasable_partitions(regions, finished(regions.topology)))),
    Case("resume, nothing recorded", fresh_situation, computed),
    Case("resume, data lost", recorded_situation, computed),
)


def measure(partitions: int, repetitions: int) -> dict[str, Any]:
    """Seconds of every case and what it found, and the peak memory of this process."""
    pipeline = pipeline_of(partitions)
    measured = {case.name: _seconds(case, pipeline, repetitions) for case in CASES}
    return {
        "partitions": partitions,
        "cases": measured,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _seconds(case: Case, pipeline: Pipeline, repetitions: int) -> dict[str, Any]:
    seconds, found = [], 0
    for _ in range(repetitions):
        prepared = case.prepare(pipeline)
        gc.collect()
        gc.disable()
        start = time.process_time()
        found = case.work(prepared)
        seconds.append(time.process_time() - start)
        gc.enable()
    return {"seconds": seconds, "found": found}


def measure_apart(partitions: int, repetitions: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", str(partitions), "--repetitions", str(repetitions)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def environment() -> dict[str, Any]:
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "pydantic": version("pydantic"),
    }


def report(small: dict[str, Any], large: dict[str, Any]) -> bool:
    """Print medians and spread; whether every limit is kept."""
    print(f"{'':26}{SMALL:>10,} partitions{'':12}{LARGE:>10,} partitions{'':9}times")
    kept = True
    for case in CASES:
        few, many = small["cases"][case.name]["seconds"], large["cases"][case.name]["seconds"]
        times = statistics.median(many) / statistics.median(few)
        within = statistics.median(few) < SECONDS_FOR_SMALL and times <= TIMES_FOR_LARGE
        kept = kept and within
        print(f"{case.name:26}{_spread(few)}   {_spread(many)}   {times:5.1f}{'' if within else '  over the limit'}")
    print(f"{'peak memory':26}{small['peak_megabytes']:>8} MB{'':22}{large['peak_megabytes']:>8} MB")
    return kept


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):8.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--only", type=int, help="measure this many partitions here and print the raw data")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.repetitions)))
        return 0
    small, large = (measure_apart(partitions, options.repetitions) for partitions in (SMALL, LARGE))
    results = HERE / "results" / "plan.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(
        json.dumps({**environment(), "repetitions": options.repetitions, "sizes": [small, large]}, indent=1) + "\n"
    )
    return 0 if report(small, large) else 1


if __name__ == "__main__":
    sys.exit(main())
