"""Counters of an author's own equal DuckDB's after kills, restarts, recomputed partitions and the loss of a ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.errors import InvalidSpec, StageContractBroken
from stagehold.ledger.ledger import Ledger
from stagehold.model.context import StageContext
from stagehold.model.standing import counted_in_all
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings
from stagehold.spec.loading.loader import load_pipeline

pytestmark = pytest.mark.spark

DAY, RUN = "2026-11-20", "r"
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def good(ctx, source):
    bad = F.col("amount") < 0
    counted = source.transform(ctx.counter("bad_rows").of(F.sum(F.when(bad, 1))))
    counted = counted.transform(ctx.counter("all.rows").of(F.count("*")))
    return counted.where(~bad)

@stage
def by_customer(ctx, good):
    sums = good.groupBy("customer").agg(F.sum("amount").alias("amount"))
    return sums.transform(ctx.counter("customers").of(F.count("*")))

@stage
def gathered(ctx, by_customer):
    twice = ctx.counter("seen")
    some = by_customer.where("amount > 100").transform(twice.of(F.count("*")))
    others = by_customer.where("amount <= 100").transform(twice.of(F.count("*")))
    answer = some.unionByName(others)
    if answer.count() < 0:  # asks for an answer first: that is another query, and counts nothing twice
        raise RuntimeError
    return answer

@stage
def fused(ctx, good):
    return good.transform(ctx.counter("lost").of(F.count("*")))

@stage
def last(ctx, fused):
    return fused
"""
PIPELINE = """\
pipeline: counts
wave: 1ms
restart: {strategy: none}
stages:
  good:
    job: counting:good
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 4}
    output: {type: blocking}
  by_customer:
    job: counting:by_customer
    inputs: {good: {exchange: keyed, key: customer}}
    partitions: 4
    output: {type: blocking}
  gathered:
    job: counting:gathered
    inputs: {by_customer: gather}
"""
FUSED = """\
pipeline: counts
stages:
  good:
    job: counting:good
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 4}
    output: {type: blocking}
  fused:
    job: counting:fused
    inputs: {good: forward}
  last:
    job: counting:last
    inputs: {fused: forward}
"""


@dataclass(frozen=True)
class Counting:
    bench: Workbench

    @staticmethod
    def make(folder: Path, spark_remote: str) -> Counting:
        project = folder / "project"
        project.mkdir(parents=True)
        (project / "counting.py").write_text(JOBS)
        (project / "counts.yaml").write_text(PIPELINE)
        settings = Settings(
            home=str(folder / "home"),
            project=str(project),
            pipelines=str(project),
            suites=str(project),
            spark_remote=spark_remote,
            spark_cores=1,
            lease_seconds=5,
        )
        counting = Counting(Workbench(settings))
        for file in range(4):
            counting.write(file, 10 * file)
        return counting

    @property
    def raw(self) -> Path:
        return Path(self.bench.settings.lake_uri) / "raw"

    def write(self, file: int, rows: int) -> None:
        """Rows of which some amounts are negative; the first file has none at all."""
        self.raw.mkdir(parents=True, exist_ok=True)
        rows_of = f"SELECT range % 7 AS customer, (range * 13) % 40 - {file} * 3 AS amount FROM range({rows})"
        duckdb.sql(rows_of).write_parquet(str(self.raw / f"{file}.parquet"))

    @property
    def expected(self) -> Mapping[str, Mapping[str, int]]:
        raw = f"'{self.raw}/*.parquet'"
        (facts,) = duckdb.sql(
            f"SELECT count(*) FILTER (amount < 0), count(*), count(DISTINCT customer) FILTER (amount >= 0) FROM {raw}"
        ).fetchall()
        bad, every, customers = facts
        return {
            "good": {"bad_rows": bad, "all.rows": every},
            "by_customer": {"customers": customers},
            "gathered": {"seen": customers},
        }

    def command(self, *words: str) -> Ended:
        return ended(self.bench.command(*words))

    def run(self, *words: str) -> Ended:
        return self.command("run", "counts", "--interval", DAY, "--run-id", RUN, "--json", *words)

    @property
    def counted(self) -> Mapping[str, Mapping[str, int]]:
        with Ledger.open(self.bench.settings.ledger_url) as ledger:
            newest = ledger.partitions.newest_of("counts", DAY)
        return {stage: dict(counted_in_all(records)) for stage, records in newest.items()}


@pytest.fixture
def counting(tmp_path, spark_remote) -> Counting:
    return Counting.make(tmp_path, spark_remote)


@pytest.mark.parametrize(
    ("point", "stage", "wave"),
    [
        (Point.AFTER_WRITE, "good", 2),
        (Point.AFTER_PUBLISH, "good", 2),
        (Point.AFTER_RECORD, "good", 2),
        (Point.AFTER_PUBLISH, "by_customer", 1),
        (Point.BEFORE_FINISH, "gathered", 0),
    ],
)
def test_after_a_kill_they_are_what_duckdb_counts(counting, point, stage, wave):
    inject(counting.bench.settings.home_path, point, stage, wave, FaultAction.KILL)
    assert killed(counting.run())
    resumed = counting.command("resume", RUN, "--json")
    assert resumed.code == 0, resumed.err
    assert counting.counted == counting.expected


def test_what_runs_again_counts_anew_and_what_does_not_counts_as_before_wherever_that_is_shown(counting):
    assert counting.run().code == 0
    before = counting.expected
    assert counting.counted == before
    counting.write(2, 35)
    done = counting.run()
    assert done.code == 0, done.err
    assert counting.counted == counting.expected != before
    told = json.loads(counting.command("status", RUN, "--json").out)
    assert {stage["stage"]: dict(stage["counters"]) for stage in told["stages"]} == counting.expected
    shown = counting.command("status", RUN).out
    assert "Counters" in shown
    assert "bad_rows" in shown
    shutil.move(counting.bench.settings.home_path / "ledger.db", counting.bench.settings.home_path / "lost.db")
    assert counting.command("reconcile").code == 0
    assert counting.counted == counting.expected, "the lake keeps them"


def test_where_no_partition_is_recorded_nothing_can_be_counted(counting):
    Path(counting.bench.settings.pipelines, "counts.yaml").write_text(FUSED)
    refused = counting.run()
    assert refused.code == 1
    assert "its function counts, and no partition of it is recorded: add `output: {type: blocking}`" in refused.err


@pytest.mark.parametrize("name", ["", "bad rows", "9", "a/b", "x" * 101])
def test_a_counter_has_a_plain_name(name):
    with pytest.raises(StageContractBroken, match="a counter has a name of letters"):
        StageContext("p", "s", "i", None, (0,), 1).counter(name)


def test_a_function_that_is_given_a_whole_wave_cannot_tell_whose_rows_it_counts():
    with pytest.raises(StageContractBroken, match="whole wave"):
        StageContext("p", "s", "i", None, (0, 1), 1).counter("rows")


def test_a_test_calls_a_function_that_counts_without_a_run(counting, spark):
    pipeline = load_pipeline(
        Path(counting.bench.settings.pipelines, "counts.yaml"),
        project=Path(counting.bench.settings.project),
        suites=Path(counting.bench.settings.suites),
    )
    assert not isinstance(pipeline, InvalidSpec)
    scope: dict[str, object] = {}
    exec(JOBS, scope)
    context = StageContext("counts", "good", DAY, None, (0,), 1)
    rows = scope["good"](context, source=spark.createDataFrame([(1, -5), (2, 5)], "customer long, amount long"))
    assert rows.collect() == [(2, 5)]
