"""How long `stagehold inspect` takes to show the tree of a checkpoint of 100,000 partitions, some of them with state.

    python bench/inspect_tree.py [--partitions 100000] [--repetitions 5]

Each repetition is a command of its own, from its start to its end, so imports count as well. Measured is processor time
of all its threads, so that other work on the machine does not count; the clock on the wall is told beside it. Prints a
line for each, writes results/inspect_tree.json, and ends with 1 if the median is 2 s or more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "inspect_tree.json"
INCLUDE = HERE.parent / "include"
sys.path.insert(0, str(INCLUDE))

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot  # noqa: E402
from stagehold.checkpoints.stage_ids import stage_shapes  # noqa: E402
from stagehold.lake.checkpoints.manifest import CheckpointedRun  # noqa: E402
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints  # noqa: E402
from stagehold.model.records import Cell, DataFile, PartitionRecord, StatePart  # noqa: E402
from stagehold.model.stage_state import StateColumn, StateKind, StateShape  # noqa: E402
from stagehold.model.standing import PartitionState  # noqa: E402
from stagehold.spec.pipeline import Pipeline, Stage  # noqa: E402
from stagehold.spec.settings.source import Source  # noqa: E402

STAGES = 10
MOST_SECONDS = 2.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = StateShape("seen", StateKind.KEYED, (StateColumn("id", "bigint"),), ("id",), "hash")


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--partitions", type=int, default=100_000)
    options.add_argument("--repetitions", type=int, default=5)
    given = options.parse_args()
    with TemporaryDirectory() as lake:
        _write_checkpoint(lake, given.partitions // STAGES)
        taken = [_shown(lake) for _ in range(given.repetitions)]
    for processor, wall in taken:
        print(f"{given.partitions:,} partitions: {processor:.2f} s of the processor, {wall:.2f} s on the wall")
    _write_results(given.partitions, taken)
    return int(statistics.median(processor for processor, _ in taken) >= MOST_SECONDS)


def _write_checkpoint(lake: str, width: int) -> None:
    names = [f"stage_{number}" for number in range(STAGES)]
    source = Source(kind="parquet", path="/raw", splits=width)
    stages = [
        Stage(name=name, job="jobs.x:y", source=source, partitions=width, max_parallelism=32768) for name in names
    ]
    pipeline = Pipeline(name="bench", file="bench.yaml", stages=tuple(stages))
    snapshots = tuple(
        StageSnapshot(shape, width, 32768, tuple(_records(lake, shape.id, width)), states=(SEEN,) if not number else ())
        for number, shape in enumerate(stage_shapes(pipeline))
    )
    taken = Checkpoint(1, SnapshotKind.CHECKPOINT, "bench", "day", "bench/run", NOW, snapshots)
    StoredCheckpoints(lake, CheckpointedRun("bench", "day", "bench/run")).write(taken, pipeline)


def _records(lake: str, stage: str, width: int) -> Iterator[PartitionRecord]:
    for number in range(width):
        file = DataFile(f"_data/attempt/{number // 50}/_partition={number}/part-0.parquet", 4096, 100)
        kept = (
            (StatePart("seen", (file,), 10, f"state {number}", width, 32768, began=""),) if stage == "stage_0" else ()
        )
        yield PartitionRecord(
            cell=Cell("bench", stage, "day"),
            partition=number,
            state=PartitionState.CONSUMABLE,
            run_id="bench/run",
            attempt_id="attempt",
            epoch=1,
            wave=number // 50,
            table=f"{lake}/stages/bench/{stage}/day",
            version=number // 50,
            files=(file,),
            rows=100,
            fingerprint=f"c-100-{stage}-{number}",
            compute_key=f"key-{stage}-{number}",
            recorded_at=NOW,
            kept=kept,
        )


def _shown(lake: str) -> tuple[float, float]:
    """Seconds of the processor, and on the wall."""
    environment = os.environ | {"PYTHONPATH": str(INCLUDE)}
    before, started = _children_seconds(), time.perf_counter()
    command = [sys.executable, "-m", "stagehold", "inspect", lake]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return _children_seconds() - before, time.perf_counter() - started


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_results(partitions: int, taken: list[tuple[float, float]]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "pyarrow": version("pyarrow"),
        "partitions": partitions,
        "stages": STAGES,
        "processor seconds of a command": [round(processor, 3) for processor, _ in taken],
        "seconds on the wall": [round(wall, 3) for _, wall in taken],
        "load of the machine": os.getloadavg(),
    }
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
