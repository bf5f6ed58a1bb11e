"""`make words RUNS=50 SEED=1`: random sequences of judge, waive, end of waiver, other data, other suites, kill and
resume, by the commands that a user types, on real Spark. After each run all tables show what may be shown then.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable
from fuzz.chaos.shown import PARTITIONS, STAGES, Place, Rows, Shown
from tests.conftest import QUICK_JAVA, free_port
from tests.run.workbench import Ended, Workbench, ended

from stagehold.run.faults import FaultAction, Point, inject
from stagehold.spark.server.server import spark_server

NAME, STEPS, SECONDS = "words", 10, 300
LIMITS = {"drafts": (9, 30, 500), "edits": (18, 60, 1000), "totals": (60, 150, 3000)}
AMOUNTS = ((7, 8), (20, 21), (3,), (300,), (45, 2), (), (10, 11, 12))
OF_WAVES = (Point.BEFORE_WRITE, Point.AFTER_WRITE, Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH, Point.AFTER_RECORD)
JOBS = """\
from pyspark.sql import functions as F

from stagehold import stage


@stage
def drafts(ctx, source):
    return source.select((F.col("amount") % 3).alias("k"), F.col("amount").alias("v"))


@stage
def edits(ctx, drafts):
    return drafts.select("k", (2 * F.col("v")).alias("v"))


@stage
def totals(ctx, edits):
    return edits.groupBy("k").agg(F.sum("v").alias("v"))
"""
INPUTS = {
    "drafts": {"source": {"kind": "parquet", "path": "${lake}/raw/words/*.parquet", "splits": PARTITIONS["drafts"]}},
    "edits": {"inputs": {"drafts": "forward"}},
    "totals": {"inputs": {"edits": "gather"}},
}


@dataclass
class Sequence:
    """One, of an interval of its own; ``done`` tells what was done, and ``counts`` how often of each kind."""

    bench: Workbench
    interval: str
    random: Random
    done: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.shown = Shown(Path(self.bench.settings.lake_uri, "raw", NAME), {})
        self.sources: dict[int, tuple[int, ...]] = {}

    def go(self, steps: int = STEPS) -> None:
        """:raises AssertionError: a table shows what it may not, or lacks what it should show."""
        self._begin()
        self.run()
        for _ in range(steps):
            possible = self._possible()
            self.random.choices(list(possible), weights=list(possible.values()))[0]()
            self.run()

    def _possible(self) -> Mapping[Callable[[], None], int]:
        """What can happen now, with how likely it is beside the others."""
        possible: dict[Callable[[], None], int] = {self.correct: 3, self.suite: 2, self.die: 2}
        if any(map(self.shown.refuses, STAGES)):
            possible |= {self.waive: 1, self.let_all: 3}
        if self.shown.holds:
            possible |= {self.end: 4}
        return possible

    def run(self) -> None:
        """A run of the interval, or a resume of its run, to its end."""
        before = self.shown.copy()
        blocked = self.shown.run()
        end = self._command(*self._run_words(), "--json")
        self._tell("run", f"blocked at {blocked}" if blocked else "to its end")
        wrong = [*self.shown.differences(before, blocked, self._published())]
        if end.code != (1 if blocked else 0):
            wrong.append(f"it ended with {end.code}: {end.err}")
        assert not wrong, "\n".join(wrong)

    def waive(self) -> None:
        self._say_of_some(ends=False)

    def let_all(self) -> None:
        """Somebody waives whatever is refused, until all is published."""
        for stage in STAGES:
            self.say([stage], ends=False)
            if stage != STAGES[-1]:
                self.run()

    def end(self) -> None:
        self._say_of_some(ends=True)

    def correct(self) -> None:
        for partition in self.random.sample(range(PARTITIONS["drafts"]), self.random.randint(1, 2)):
            self.write(partition, self.random.choice([one for one in AMOUNTS if one != self.sources[partition]]))

    def suite(self) -> None:
        stage = self.random.choice(STAGES)
        self.limit(stage, self.random.choice(LIMITS[stage]))

    def die(self) -> None:
        """Somebody says something, or there is other data, and whoever acts on it is killed at some point."""
        self.random.choice((self.waive, self.end, self.correct))()
        stage, point = self.random.choice(STAGES), self.random.choice(OF_WAVES)
        armed = inject(self.bench.settings.home_path, point, stage, 1, FaultAction.KILL)
        end = self._command(*self._run_words(), "--json")
        armed.unlink(missing_ok=True)
        self._tell("killed" if end.code < 0 else "not killed", f"{point} of {stage}")

    def say(self, stages: Collection[str], *, ends: bool) -> None:
        for stage in filter(self.shown.refuses, stages):
            words = ("waive", stage, "--pipeline", NAME, "--interval", self.interval, "--partition", "all")
            end = self._command(*words, "--reason", "known", "--json", *(["--end"] if ends else []))
            assert end.code == 0, end.err
            self.shown.say(stage, ends=ends)
            self._tell("end" if ends else "waive", stage)

    def write(self, partition: int, amounts: tuple[int, ...]) -> None:
        path = self.shown.source / f"{partition}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"amount": pa.array(amounts, pa.int64())}), path)
        self.sources[partition] = amounts
        self._tell("data", f"{partition} is {amounts}")

    def limit(self, stage: str, most: int) -> None:
        expectation = {
            "type": "expect_column_values_to_be_between",
            "column": "v",
            "min_value": 0,
            "max_value": most,
            "severity": "critical",
        }
        suite = {"suite": f"words_{stage}", "expectations": [expectation]}
        Path(self.bench.settings.suites, f"words_{stage}.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
        self.shown.limits[stage] = most
        self._tell("suite", f"{stage} at most {most}")

    def _begin(self) -> None:
        for partition in range(PARTITIONS["drafts"]):
            self.write(partition, self.random.choice(AMOUNTS))
        for stage in STAGES:
            self.limit(stage, self.random.choice(LIMITS[stage]))

    def _run_words(self) -> tuple[str, ...]:
        run_id = f"{NAME}/{self.interval}"
        if self.counts["run"] and self.random.random() < 0.5:
            return ("resume", run_id)
        return ("run", NAME, "--interval", self.interval, "--run-id", run_id)

    def _say_of_some(self, *, ends: bool) -> None:
        self.say(self.random.choice((STAGES, STAGES[:1], STAGES[1:2], STAGES[2:])), ends=ends)

    def _published(self) -> Mapping[Place, Rows]:
        found: dict[Place, list[tuple[int, int]]] = {}
        for stage in STAGES:
            uri = Path(self.bench.settings.lake_uri, "marts", f"words_{stage}")
            rows = DeltaTable(str(uri)).to_pyarrow_table().to_pylist() if uri.is_dir() else []
            for row in rows:
                if row["_interval"] == self.interval:
                    found.setdefault((stage, row["_partition"]), []).append((row["k"], row["v"]))
        return {place: tuple(sorted(rows)) for place, rows in found.items()}

    def _command(self, *words: str) -> Ended:
        return ended(self.bench.command(*words), SECONDS)

    def _tell(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self.done.append(f"{kind} {text}")


def declare(bench: Workbench) -> None:
    """Put the pipeline into the workbench's project."""
    settings = bench.settings
    Path(settings.project, "words_jobs.py").write_text(JOBS)
    stages = {
        stage: {
            "job": f"words_jobs:{stage}",
            **INPUTS[stage],
            "gate": f"words_{stage}",
            "output": {"type": "blocking_persistent", "table": f"marts.words_{stage}"},
        }
        for stage in STAGES
    }
    document = {"pipeline": NAME, "wave": "100ms", "stages": stages}
    Path(settings.pipelines, f"{NAME}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def one_sequence(bench: Workbench, seed: int, number: int, steps: int = STEPS) -> tuple[Sequence, str | None]:
    """What was done, and what is wrong; None if nothing is."""
    shutil.rmtree(Path(bench.settings.lake_uri, "raw", NAME), ignore_errors=True)
    sequence = Sequence(bench, f"words-{number}", Random(f"{seed}/{number}"))
    try:
        sequence.go(steps)
    except Exception:  # noqa: BLE001 - whatever is wrong is told with the seed
        return sequence, traceback.format_exc()
    return sequence, None


def main() -> int:
    asked = _arguments()
    numbers = [asked.only] if asked.only else range(asked.first, asked.runs + 1)
    counts, wrong = Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="words-", ignore_cleanup_errors=True) as folder:
        bench = Workbench.make(Path(folder), "")
        settings = replace(bench.settings, spark_memory="1g", spark_java_options=QUICK_JAVA)
        bench = Workbench(replace(settings, spark_port=free_port()))
        declare(bench)
        with spark_server(bench.settings):
            for number in numbers:
                started = time.monotonic()
                sequence, violation = one_sequence(bench, asked.seed, number)
                counts += sequence.counts
                wrong += violation is not None
                told = f"{time.monotonic() - started:.0f} s: {'; '.join(sequence.done)}"
                print(f"sequence {number}: {'WRONG' if violation else 'right'}, {told}", flush=True)
                if violation:
                    print(f"{violation}\nAgain: python -m fuzz.chaos.words --seed {asked.seed} --only {number}")
    print(f"{len(numbers)} sequences, {wrong} wrong, seed {asked.seed}: {dict(sorted(counts.items()))}")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="how many sequences")
    parser.add_argument("--first", type=int, default=1, help="begin with the sequence of this number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one sequence to do again")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
