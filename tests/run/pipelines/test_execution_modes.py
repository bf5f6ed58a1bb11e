"""Each execution mode gives the same rows, also after kills; what flows by key or whole is in no table."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, Ended, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark

JOBS = """\
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source.select("number", (F.col("number") % 7).alias("colour"))

@stage
def known(ctx, numbers):
    return numbers.groupBy().agg(F.max("number").alias("largest"))

@stage
def by_colour(ctx, numbers):
    return numbers.groupBy("colour").agg(F.sum(F.col("number") * 2).alias("total"), F.count("*").alias("numbers"))

@stage
def by_parity(ctx, by_colour):
    return by_colour.select((F.col("colour") % 2).alias("parity"), "colour", "total", "numbers")

@stage
def shares(ctx, by_parity, known):
    return by_parity.crossJoin(known).groupBy("parity", "colour", "largest").agg(
        F.sum("total").alias("total"), F.sum("numbers").alias("numbers"))

@stage
def summary(ctx, shares):
    return shares
"""
STAGES = """\
stages:
  numbers: {job: "jobs:numbers", source: {kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: 4}}
  known: {job: "jobs:known", inputs: {numbers: gather}}
  by_colour: {job: "jobs:by_colour", inputs: {numbers: {exchange: keyed, key: colour}}, partitions: 3}
  by_parity: {job: "jobs:by_parity", inputs: {by_colour: forward}}
  shares:
    job: jobs:shares
    inputs: {by_parity: {exchange: keyed, key: parity}, known: broadcast}
    key: parity
    partitions: 2
  summary: {job: "jobs:summary", inputs: {shares: gather}, output: {type: blocking_persistent, table: marts.modes}}
"""
MODES = ("pipelined", "pipelined_with_batch_fallback", "pipelined_forced", "batch", "batch_forced")
IN_TABLES = {
    "pipelined": {"numbers", "summary"},  # numbers are read by branches that meet again
    "pipelined_with_batch_fallback": {"numbers", "summary"},
    "pipelined_forced": {"summary"},
    "batch": {"numbers", "known", "by_parity", "shares", "summary"},
    "batch_forced": {"numbers", "known", "by_colour", "by_parity", "shares", "summary"},
}


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    (Path(bench.settings.project) / "jobs.py").write_text(JOBS)
    return bench


def declare(bench: Workbench, mode: str) -> None:
    path = Path(bench.settings.pipelines) / "modes.yaml"
    path.write_text(f"pipeline: modes\nwave: 100ms\nexecution_mode: {mode}\n{STAGES}")


def run(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command("run", "modes", "--interval", INTERVAL, "--json", "--run-id", "r1", *words))


def published(bench: Workbench) -> list[tuple[int, int, int]]:
    (table,) = Path(bench.settings.lake_uri).glob("**/modes/_delta_log")
    rows = DeltaTable(str(table.parent)).to_pyarrow_table().to_pylist()
    return sorted((row["colour"], row["total"], row["numbers"]) for row in rows)


def in_tables(bench: Workbench, interval: str = INTERVAL) -> set[str]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return set(ledger.partitions.newest_of("modes", interval))


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_the_same_rows_and_stores_what_it_says(mode, bench):
    declare(bench, mode)
    done = run(bench)
    assert done.code == 0, done.err
    assert published(bench) == bench.expected()
    assert in_tables(bench) == IN_TABLES[mode]
    assert run(bench, "--run-id", "r2").counts[1] == 0
    bench.write_source(2, first=1000)
    again = run(bench, "--run-id", "r3")
    assert again.code == 0, again.err
    assert published(bench) == bench.expected()


@pytest.mark.parametrize("point", [Point.MID_WRITE, Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH])
@pytest.mark.parametrize("mode", ["pipelined", "pipelined_forced"])
def test_after_a_kill_what_flowed_is_computed_again_and_nothing_is_lost_or_there_twice(mode, point, bench):
    declare(bench, mode)
    bench.inject(point, "summary", 1, FaultAction.KILL)
    assert killed(run(bench))
    assert run(bench).code == 0
    assert published(bench) == bench.expected()


def test_after_an_attempt_that_ran_out_of_memory_the_fallback_stores_what_flowed_by_key(bench, tmp_path):
    trap = tmp_path / "trap"
    trap.touch()
    trapped = f'''
    import pathlib
    trap = pathlib.Path("{trap}")
    if trap.exists():
        trap.unlink()
        raise MemoryError
    return shares
'''
    (Path(bench.settings.project) / "jobs.py").write_text(JOBS.replace("\n    return shares\n", trapped))
    declare(bench, "pipelined_with_batch_fallback")
    done = run(bench)
    assert done.code == 0, done.err
    assert published(bench) == bench.expected()
    assert in_tables(bench) == {"numbers", "known", "by_colour", "by_parity", "shares", "summary"}


def test_what_may_come_out_different_is_refused_where_partitions_share_its_rows(bench):
    path = Path(bench.settings.project) / "jobs.py"
    path.write_text(JOBS.replace('"colour").agg(F.sum', '"colour").agg(F.first("number").alias("any"), F.sum'))
    declare(bench, "pipelined")
    path = Path(bench.settings.pipelines) / "modes.yaml"
    path.write_text(
        path.read_text().replace("key: parity\n    part", "key: parity\n    output: {type: blocking}\n    part")
    )
    refused = run(bench)
    assert refused.code == 1, refused.err
    assert "Partitions of shares share its rows, which are computed along and not stored" in refused.err
    assert "say `output: {type: blocking}` for by_colour, or `determinism: warn`" in refused.err
    path.write_text(path.read_text().replace("partitions: 3}", "partitions: 3, determinism: warn}"))
    assert run(bench).code == 0
    assert published(bench) == bench.expected()


def test_another_mode_over_the_same_interval_gives_the_same_rows(bench):
    for number, mode in enumerate(("batch", "pipelined", "pipelined_forced", "batch_forced")):
        declare(bench, mode)
        done = run(bench, "--run-id", f"r{number}")
        assert done.code == 0, done.err
        assert published(bench) == bench.expected()


def test_a_plan_says_what_a_kill_costs_before_the_run(bench):
    declare(bench, "pipelined")
    told = ended(bench.command("plan", "modes", "--interval", INTERVAL, "--json")).result["exchanges"]
    assert [edge for edge in told if (edge["from"], edge["to"]) == ("shares", "summary")] == [
        {
            "from": "shares",
            "to": "summary",
            "exchange": "gather",
            "type": "pipelined",
            "stored": False,
            "why": "mode",
            "a_kill_costs": "all of summary, with all of shares",
        }
    ]
    shown = ended(bench.command("plan", "modes", "--interval", INTERVAL)).out
    assert "its branches meet again, and could wait for each other" in shown
    said = ended(bench.command("run", "modes", "--interval", INTERVAL)).err
    assert "a kill costs all of summary" in said


def edge_of(bench: Workbench, interval: str, producer: str) -> dict[str, object]:
    told = ended(bench.command("plan", "modes", "--interval", interval, "--json")).result["exchanges"]
    (edge,) = (edge for edge in told if edge["from"] == producer)
    return edge


def test_auto_stores_what_it_does_not_know_and_then_what_is_worth_it(bench):
    declare(bench, "auto")
    days = ("2026-11-20", "2026-11-21")
    assert edge_of(bench, days[0], "shares")["worth"] == {"stored": True, "again": None, "storing": None}
    first = run(bench, "--interval", days[0])
    assert first.code == 0, first.err
    assert "stores shares: what it costs is not on record" in first.err
    assert in_tables(bench, days[0]) == IN_TABLES["batch_forced"]
    weighed = edge_of(bench, days[1], "shares")["worth"]
    assert weighed["stored"] is False
    assert weighed["again"] > 0 < weighed["storing"]
    shown = ended(bench.command("plan", "modes", "--interval", days[1])).out
    assert f"{weighed['again']:.1f} s to compute again, {weighed['storing']:.1f} s to store" in shown
    bench.inject(Point.BEFORE_PUBLISH, "summary", 1, FaultAction.KILL)
    assert killed(run(bench, "--interval", days[1], "--run-id", "r2"))
    assert edge_of(bench, days[1], "shares")["worth"] == weighed
    second = run(bench, "--interval", days[1], "--run-id", "r2")
    assert second.code == 0, second.err
    assert "computes along shares: " in second.err
    assert in_tables(bench, days[1]) == IN_TABLES["pipelined"]
    assert published(bench) == sorted([*bench.expected(), *bench.expected()])
