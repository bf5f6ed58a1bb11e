"""The sample `customer_totals`, by the command: exact against DuckDB after a kill at every step, back at day 3, and cut
otherwise.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from tests.made_up import TIMES
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.local.demo.sample import bring_day, make_sample
from stagehold.run.faults import FaultAction, Point, StatePoint
from stagehold.settings import PROJECT, Settings

pytestmark = [pytest.mark.spark, pytest.mark.one_story, pytest.mark.timeout(900)]

STAGE = "customer_totals"
DAYS = [date(2026, 11, day) for day in range(1, 7)]
KILLS = [
    [(Point.BEFORE_FENCE, 0), (Point.BEFORE_WRITE, 1)],
    [(Point.AFTER_FENCE, 0), (StatePoint.BEFORE_STATE, 2)],
    [(Point.MID_WRITE, 2), (Point.AFTER_WRITE, 1)],
    [(Point.AFTER_MEASURE, 1), (Point.BEFORE_PUBLISH, 2)],
    [(Point.AFTER_PUBLISH, 1), (Point.AFTER_RECORD, 1)],
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory, spark_remote):
    bench = Workbench.make(tmp_path_factory.mktemp("customers"), spark_remote)
    shutil.copytree(Path(PROJECT) / "jobs", Path(bench.settings.project) / "jobs")
    make_sample(Path(bench.settings.lake_uri), 0.01)
    declare(bench)
    return bench


def declare(bench: Workbench, **changes: str) -> None:
    """The sample's file, in waves as short as can be."""
    text = (Path(PROJECT) / "include" / "pipelines" / f"{STAGE}.yaml").read_text()
    for old, new in {"wave: 1s": "wave: 100ms", **changes}.items():
        assert old in text
        text = text.replace(old, new)
    (Path(bench.settings.pipelines) / f"{STAGE}.yaml").write_text(text)


def run(bench: Workbench, day: date, *words: str) -> Ended:
    return ended(bench.command("run", STAGE, "--interval", str(day), "--json", *words))


def totals(bench: Workbench, day: date, settings: Settings | None = None) -> list[tuple]:
    """As any reader of the published table sees them."""
    table = DeltaTable(f"{(settings or bench.settings).lake_uri}/marts/{STAGE}")
    own = table.to_pyarrow_table(filters=[("_interval", "=", str(day))])
    return sorted((row["custkey"], row["spent"], row["orders"]) for row in own.to_pylist())


def expected(bench: Workbench, *days: date) -> list[tuple]:
    files = [f"{bench.settings.lake_uri}/raw/daily_orders/{day}.parquet" for day in days]
    query = "SELECT o_custkey, sum(o_totalprice)::DECIMAL(18,2), count(*) FROM read_parquet(?) GROUP BY ALL ORDER BY 1"
    with duckdb.connect() as connection:
        return connection.execute(query, [files]).fetchall()


def say(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command(*words, "--json"))


def test_totals_are_exact_after_a_kill_at_every_step(bench):
    """At one of each two of them, but for `make fuzz`."""
    for number, (day, kills) in enumerate(zip(DAYS, KILLS, strict=False)):
        bring_day(Path(bench.settings.lake_uri), day)
        for point, wave in kills if TIMES > 1 else [kills[number % 2]]:
            bench.inject(point, STAGE, wave, FaultAction.KILL)
            assert killed(run(bench, day)), point
        assert run(bench, day, "--run-id", f"day {number + 1}").code == 0
        assert totals(bench, day) == expected(bench, *DAYS[: number + 1])


def test_a_day_is_gone_back_to_and_the_days_after_it_follow(bench):
    """Day 3 was computed by code that was wrong, and so were the days after it."""
    assert say(bench, "savepoint", "create", "day 3", "--name", "day_3").code == 0
    job = Path(bench.settings.project) / "jobs" / "customers.py"
    right = job.read_text()
    job.write_text(
        right.replace('"o_custkey", "o_totalprice"', '"o_custkey", (F.col("o_totalprice") * 2).alias("o_totalprice")')
    )
    wrong = run(bench, DAYS[2])
    assert f"{STAGE} keeps other state now than what {DAYS[3]} to {DAYS[4]} went on with" in wrong.err
    assert totals(bench, DAYS[2]) != expected(bench, *DAYS[:3])
    job.write_text(right)
    planned = json.loads(say(bench, "plan", STAGE, "--interval", str(DAYS[2]), "--restore", "day_3").out)
    back = run(bench, DAYS[2], "--restore", "day_3")
    assert (back.code, back.counts) == (0, (12, 0)), back.err
    assert planned["run"] == 0
    assert "keeps other state now" not in back.err, "the days after it went on with what it keeps again"
    assert totals(bench, DAYS[2]) == expected(bench, *DAYS[:3])
    for number in (3, 4):
        assert run(bench, DAYS[number]).counts[1] == 0, "they went on with what day 3 keeps again"
        assert totals(bench, DAYS[number]) == expected(bench, *DAYS[: number + 1])


def test_a_sandbox_goes_on_with_what_production_kept_the_day_before(bench):
    job = Path(bench.settings.project) / "jobs" / "customers.py"
    right, day = job.read_text(), DAYS[4]
    before = totals(bench, day)
    job.write_text(right.replace('F.lit(1).alias("orders")', 'F.lit(100).alias("orders")'))
    tried = run(bench, day, "--sandbox", "hundredfold")
    job.write_text(right)
    assert (tried.code, tried.counts) == (0, (4, 8)), tried.err
    hundredfold = {key: orders for key, _, orders in totals(bench, day, bench.settings.in_sandbox("hundredfold"))}
    yesterday = {key: orders for key, _, orders in totals(bench, DAYS[3])}
    today = {key: orders for key, _, orders in expected(bench, day)}
    assert hundredfold == {key: yesterday.get(key, 0) + 100 * today.get(key, 0) for key in {*yesterday, *today}}
    assert totals(bench, day) == before


def test_more_partitions_go_on_with_the_same_totals(bench):
    declare(bench, **{"partitions: 8": "partitions: 12"})
    bring_day(Path(bench.settings.lake_uri), DAYS[5])
    assert run(bench, DAYS[5]).code == 0
    assert totals(bench, DAYS[5]) == expected(bench, *DAYS)


def test_a_savepoint_is_restored_into_other_partitions(bench):
    """Rows and state are dealt anew by their keys; then the days after it run again, and come out as they were."""
    declare(bench, **{"partitions: 8": "partitions: 5"})
    asked = ("--restore", "day_3")
    shown = run(bench, DAYS[2], "--dry-run", *asked)
    assert (shown.code, json.loads(shown.out)["restore"]["dealt_anew"]) == (0, 5)
    told = ended(bench.command("plan", STAGE, "--interval", str(DAYS[2]), *asked)).out
    assert "it is cut into 5 now, and 5 have their rows dealt anew by key" in " ".join(told.split())
    assert run(bench, DAYS[2], *asked).counts == (4, 5)
    assert totals(bench, DAYS[2]) == expected(bench, *DAYS[:3])
    assert run(bench, DAYS[3]).counts == (4, 5)
    assert totals(bench, DAYS[3]) == expected(bench, *DAYS[:4])


def test_a_savepoint_goes_on_in_another_lake(bench, tmp_path):
    """Where nothing is known of the days before it, and all files lie there, too."""
    declare(bench)
    there = replace(bench.settings, home=str(tmp_path / "home"))
    raw = Path(there.lake_uri) / "raw" / "daily_orders"
    shutil.copytree(f"{bench.settings.lake_uri}/raw/daily_orders", raw)
    for words in (
        ("savepoint", "export", "day_3", str(tmp_path / "moved")),
        ("savepoint", "import", str(tmp_path / "moved")),
    ):
        moved = ended(bench.command(*words, "--json", settings=bench.settings if words[1] == "export" else there))
        assert moved.code == 0, moved.err
    back = ended(
        bench.command("run", STAGE, "--interval", str(DAYS[2]), "--restore", "day_3", "--json", settings=there)
    )
    assert (back.code, back.counts) == (0, (12, 0)), back.err
    following = ended(bench.command("run", STAGE, "--interval", str(DAYS[3]), "--json", settings=there))
    assert following.code == 0, following.err
    assert totals(bench, DAYS[3], there) == expected(bench, *DAYS[:4])


def test_a_copy_of_the_lake_shows_what_a_savepoint_keeps(bench, tmp_path):
    """Without ledger, code and Spark, as on another machine."""
    copied = replace(bench.settings, home=str(tmp_path), lake=str(tmp_path / "lake"), project=str(tmp_path / "none"))
    shutil.copytree(bench.settings.lake_uri, copied.lake)
    tree = look(bench, copied, "day_3")
    (stage,) = (stage for stage in tree["stages"] if stage["name"] == STAGE)
    (state,) = stage["states"]
    wanted = expected(bench, *DAYS[:3])
    assert (state["shape"]["name"], state["amount"]["rows"]) == ("totals", len(wanted))
    key, spent, orders = wanted[7]
    (row,) = look(bench, copied, "day_3", "--stage", STAGE, "--state", "totals", "--keys", str(key))["rows"]
    assert (row["custkey"], Decimal(str(row["spent"])), row["orders"]) == (key, spent, orders)
    query = f'SELECT sum(orders) AS n FROM "{STAGE}"."totals"'
    (found,) = look(bench, copied, "day_3", "--sql", query)["rows"]
    assert found["n"] == sum(row[2] for row in wanted)


def look(bench: Workbench, settings: Settings, *words: str) -> Any:
    shown = ended(bench.command("inspect", *words, "--json", settings=settings))
    assert shown.code == 0, shown.err
    return json.loads(shown.out)
