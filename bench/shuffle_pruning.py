"""What a keyed reader's wave reads of its producers, and what the order that makes it so costs them.

Bytes are those that the Spark server's process reads while a wave is computed into nothing. Eight waves are compared
with one wave over everything. Seconds are ratios of pairs that ran one right after the other. ``python
shuffle_pruning.py [SCALE] [PAIRS]``; the defaults are 1 and 5. Writes results/shuffle_pruning.json.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.store.location import TableLocation
from stagehold.ledger.ledger import Ledger
from stagehold.local.demo.sample import make_sample
from stagehold.model.context import StageContext, stage
from stagehold.plan.resume.decisions import Decision
from stagehold.run.functions.frame_builder import FrameBuilder
from stagehold.run.functions.stage_inputs import Intermediates, Reading
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import running_server, spark_server
from stagehold.spark.session.sessions import open_session, release_session
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Input, Pipeline, Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).parent / "results" / "shuffle_pruning.json"
PIPELINE, INTERVAL = "shipping_priority", "bench"
READERS = ("orders_by_customer", "shipping_priority")
PRODUCER = "lineitem"  # the largest
WAVES = 8
PASS_ON = "shuffle_pruning:pass_on"


@stage
def pass_on(ctx: StageContext, **inputs: DataFrame) -> DataFrame:
    """Everything that is read, so that little but reading is measured."""
    (frame,) = inputs.values()
    return frame


def main() -> None:
    scale, pairs = (float(sys.argv[1]) if len(sys.argv) > 1 else 1.0), (int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(load_settings(), home=f"{folder}/home", spark_port=15114)
        make_sample(Path(settings.lake_uri), scale)
        with spark_server(settings):
            pipeline = find_pipeline(PIPELINE, settings)
            request = RunRequest(pipeline.model_copy(update={"wave": "auto"}), "bench", INTERVAL, {})
            run_locally(request, settings, print)
            with bench(settings, request) as measuring:
                show(scale, measuring.bytes_read(), measuring.seconds(pairs))


@contextmanager
def bench(settings: Settings, request: RunRequest) -> Iterator[Bench]:
    session = str(uuid4())
    spark = open_session(settings, session)
    with Ledger.open(settings.ledger_url) as ledger:
        plan, sources = (
            IntervalView.of_run(request, ledger, settings).plan,
            IntervalView(request, ledger, settings).sources,
        )
    frames = FrameBuilder(
        spark, Reading(request.pipeline, plan.by_stage, sources, context, settings.project), Intermediates()
    )
    server = running_server(settings)
    assert server is not None
    try:
        yield Bench(spark, request.pipeline, frames, plan.by_stage, server.pid, Path(settings.home))
    finally:
        release_session(settings, session)


def context(reader: Stage, partitions: tuple[int, ...]) -> StageContext:
    return StageContext(PIPELINE, reader.name, INTERVAL, None, partitions, 0, {})


@dataclass(frozen=True)
class Bench:
    spark: SparkSession
    pipeline: Pipeline
    frames: FrameBuilder
    decisions: Mapping[str, Sequence[Decision]]
    server: int
    folder: Path

    def bytes_read(self) -> dict[str, dict[str, int]]:
        """Bytes by reader and input, and of all:
        what is recorded, what one wave over all reads, and the sum of what eight read.
        """
        readers = [(self.pipeline.stage(name), edge) for name in READERS for edge in self.pipeline.stage(name).inputs]
        alone = {"name": "reader", "job": PASS_ON}
        found = {
            f"{reader.name} reads {edge.stage}": self._bytes_of(
                reader.model_copy(update={**alone, "inputs": (edge,), "key": edge.key})
            )
            for reader, edge in readers
        }
        kinds = next(iter(found.values()))
        return {**found, "all of them": {kind: sum(sizes[kind] for sizes in found.values()) for kind in kinds}}

    def _bytes_of(self, reader: Stage) -> dict[str, int]:
        everything = tuple(range(reader.partitions))
        bounds = [index * len(everything) // WAVES for index in range(WAVES + 1)]
        self._read(reader, everything)  # so that classes are loaded
        return {
            "recorded": sum(
                decision.record.bytes for decision in self.decisions[reader.inputs[0].stage] if decision.record
            ),
            "one wave": self._read(reader, everything),
            f"{WAVES} waves": sum(self._read(reader, everything[first:last]) for first, last in pairwise(bounds)),
        }

    def _read(self, reader: Stage, partitions: tuple[int, ...]) -> int:
        before = read_by(self.server)
        self.frames.output(reader, partitions).write.format("noop").mode("overwrite").save()
        return read_by(self.server) - before

    def seconds(self, pairs: int) -> dict[str, list[float]]:
        """Ratios of pairs of writes: of the largest producer,
        and of a stage that passes it on partition by partition.
        """
        producer = self.pipeline.stage(PRODUCER)
        everything = tuple(range(producer.partitions))
        groups, produced = self.frames.group_columns(producer), self.frames.output(producer, everything)
        forward = {"name": "passed_on", "source": None, "inputs": (Input(stage=PRODUCER),), "job": PASS_ON}
        branches = self.frames.output(producer.model_copy(update=forward), everything)
        one_scan = self.frames.output(producer.model_copy(update={**forward, "per_wave": True}), everything)

        def write(frame: DataFrame, sort_by: Sequence[str] = ()) -> Callable[[], None]:
            return lambda: self._write(frame, everything, sort_by)

        return {
            "sorted by group / not sorted": ratios(write(produced, groups), write(produced), pairs),
            "a branch per partition / one scan": ratios(write(branches), write(one_scan), pairs),
        }

    def _write(self, frame: DataFrame, partitions: tuple[int, ...], sort_by: Sequence[str]) -> None:
        location = TableLocation("bench", str(self.folder / "written"), "bench", None)
        stage_frame(frame, WaveFiles(location, "attempt", 1, partitions, sort_by, arranged=True))
        shutil.rmtree(location.uri)


def ratios(one: Callable[[], None], other: Callable[[], None], pairs: int) -> list[float]:
    """``one`` by ``other``; which of them goes first alternates, and a first pair is thrown away."""
    found = []
    for number in range(pairs + 1):
        steps = (one, other) if number % 2 else (other, one)
        took = {step: timed(step) for step in steps}
        found.append(took[one] / took[other])
    return found[1:]


def timed(step: Callable[[], None]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def read_by(process: int) -> int:
    """Bytes that a process has read so far, from wherever: the page cache counts as a disk does."""
    lines = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
    return int(lines["rchar"])


def show(scale: float, read: dict[str, dict[str, int]], seconds: dict[str, list[float]]) -> None:
    facts = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    facts |= {package: version(package) for package in ("pyspark", "delta-spark", "deltalake")}
    shape = {"scale": scale, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    RESULTS.write_text(json.dumps(facts | shape | {"bytes": read, "ratios": seconds}, indent=2) + "\n")
    for reader, found in read.items():
        ratio = found[f"{WAVES} waves"] / found["one wave"]
        megabytes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in found.items())
        print(f"{reader:20} {megabytes}: {WAVES} waves read {ratio:.2f} x one wave")
    for name, found in seconds.items():
        print(
            f"{name:36} {statistics.median(found):.2f} (from {min(found):.2f} to {max(found):.2f} in {len(found)} "
            "pairs)"
        )


if __name__ == "__main__":
    main()
