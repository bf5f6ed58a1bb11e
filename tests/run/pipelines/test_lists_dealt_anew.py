"""Lists that a stage keeps, when a run is restored into another number of partitions, by the command; killed on the
way, and gone on with in another lake.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.run.faults import FaultAction, Point
from stagehold.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.one_story, pytest.mark.timeout(600)]

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def events(ctx, source):
    return source

@stage
def heard(ctx, events):
    everybody, rules = ctx.state.read("everybody"), ctx.state.read("rules")
    today = events.select("who").distinct()
    ctx.state.put("backlog", ctx.state.read("backlog").unionByName(today))
    ctx.state.put("everybody", today)
    ctx.state.put("rules", rules.unionByName(events.sparkSession.range(2).select(F.col("id").alias("rule"))))
    return events.groupBy("who").count().select(
        "who", F.lit(everybody.count()).alias("everybody"), F.lit(rules.count()).alias("rules")
    )
"""
PIPELINE = """
pipeline: news
schedule: "@daily"
wave: 100ms
stages:
  events:
    job: news_jobs:events
    source: {{kind: parquet, path: "${{lake}}/days/*.parquet", splits: 2, incremental: true}}
  heard:
    job: news_jobs:heard
    inputs: {{events: {{exchange: keyed, key: who}}}}
    partitions: {partitions}
    state:
      backlog: {{kind: split, columns: {{who: string}}}}
      everybody: {{kind: union, columns: {{who: string}}}}
      rules: {{kind: broadcast, columns: {{rule: bigint}}}}
"""
DAYS = [f"2026-11-0{day}" for day in range(1, 4)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory, spark_remote):
    folder = tmp_path_factory.mktemp("news")
    bench = Workbench.of(folder, spark_remote)
    for path in ("pipelines", "suites"):
        (folder / "project" / path).mkdir(parents=True)
    (folder / "project" / "news_jobs.py").write_text(JOBS)
    return bench


def cut(bench: Workbench, partitions: int) -> None:
    (Path(bench.settings.pipelines) / "news.yaml").write_text(PIPELINE.format(partitions=partitions))


def arrive(settings: Settings, day: int) -> None:
    path = Path(settings.lake_uri) / "days" / f"{day}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"who": [f"{day}-{number % 20}" for number in range(60)]}), path)


def run(bench: Workbench, day: str, *words: str, settings: Settings | None = None) -> Ended:
    return ended(bench.command("run", "news", "--interval", day, "--json", *words, settings=settings))


def heard(settings: Settings, day: str, partitions: int) -> tuple[PartitionRecord, ...]:
    with Ledger.open(settings.ledger_url) as ledger:
        records = ledger.partitions.newest_of("news", day)["heard"]
    return tuple(record for record in records if record.partition < partitions)


def lists(records: tuple[PartitionRecord, ...], name: str) -> list[list[Any]]:
    """What each partition keeps under one name."""
    parts = [next(part for part in record.states if part.name == name) for record in records]
    files = [
        [f"{record.table}/{file.path}" for file in part.files] for record, part in zip(records, parts, strict=True)
    ]
    return [
        [value for value, *_ in duckdb.sql(f"SELECT * FROM read_parquet({paths})").fetchall()] if paths else []
        for paths in files
    ]


def given(records: tuple[PartitionRecord, ...]) -> set[tuple[int, int]]:
    """How long the lists were that partitions began with."""
    files = [f"{record.table}/{file.path}" for record in records for file in record.files]
    return set(duckdb.sql(f"SELECT DISTINCT everybody, rules FROM read_parquet({files})").fetchall())


def flat(kept: list[list[Any]]) -> Counter[Any]:
    return Counter(element for elements in kept for element in elements)


def test_each_element_is_kept_once_however_often_it_is_killed_and_copies_by_all(bench):
    cut(bench, 4)
    for number, day in enumerate(DAYS[:2], 1):
        arrive(bench.settings, number)
        assert run(bench, day, "--run-id", f"day {number}").code == 0
    before = heard(bench.settings, DAYS[1], 4)
    made = ended(bench.command("savepoint", "create", "day 2", "--name", "two", "--json"))
    assert made.code == 0, made.err
    cut(bench, 7)
    asked = ("--run-id", "wider", "--restore", "two")
    told = ended(bench.command("plan", "news", "--interval", DAYS[1], "--restore", "two")).out
    assert "it is cut into 7 now, and 7 have their rows dealt anew by key" in " ".join(told.split())
    for point, wave in ((Point.AFTER_RECORD, 2), (Point.AFTER_PUBLISH, 2)):
        bench.inject(point, "heard", wave, FaultAction.KILL)
        assert killed(run(bench, DAYS[1], *asked))
    again = run(bench, DAYS[1], *asked)
    assert again.code == 0, again.err
    after = heard(bench.settings, DAYS[1], 7)
    assert len(after) == 7
    for name in ("backlog", "everybody"):
        assert flat(lists(after, name)) == flat(lists(before, name)) != Counter()
    sizes = [len(elements) for elements in lists(after, "backlog")]
    assert max(sizes) - min(sizes) <= 1, "split evenly"
    assert [sorted(elements) for elements in lists(after, "rules")] == [[0, 0, 1, 1]] * 7


def test_the_next_day_goes_on_with_them(bench):
    arrive(bench.settings, 3)
    third = run(bench, DAYS[2], "--run-id", "day 3")
    assert third.code == 0, third.err
    records = heard(bench.settings, DAYS[2], 7)
    assert given(records) == {(20, 4)}, "everybody's list, and one copy of the rules"
    assert flat(lists(records, "backlog")) == Counter(f"{day}-{who}" for day in (1, 2, 3) for who in range(20))


def test_a_lake_that_knows_nothing_of_the_days_before_deals_them_anew_and_goes_on(bench, tmp_path):
    there = replace(bench.settings, home=str(tmp_path / "home"))
    shutil.copytree(Path(bench.settings.lake_uri) / "days", Path(there.lake_uri) / "days")
    for words, settings in (
        (("savepoint", "export", "two", str(tmp_path / "moved")), bench.settings),
        (("savepoint", "import", str(tmp_path / "moved")), there),
    ):
        moved = ended(bench.command(*words, "--json", settings=settings))
        assert moved.code == 0, moved.err
    cut(bench, 3)
    put = run(bench, DAYS[1], "--run-id", "put", "--restore", "two", settings=there)
    assert put.code == 0, put.err
    kept = heard(there, DAYS[1], 3)
    assert flat(lists(kept, "backlog")) == Counter(f"{day}-{who}" for day in (1, 2) for who in range(20))
    assert json.loads(run(bench, DAYS[1], "--run-id", "again", settings=there).out)["computed"] == 0
    following = run(bench, DAYS[2], "--run-id", "three", settings=there)
    assert following.code == 0, following.err
    assert given(heard(there, DAYS[2], 3)) == {(20, 4)}
