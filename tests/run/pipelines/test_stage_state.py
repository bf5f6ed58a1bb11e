"""Stages that keep state from interval to interval, on a real Spark server, compared with DuckDB over all days."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

from stagehold.errors import EarlierMissing
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.plan.resume.decisions import Action
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.restoring import new_restore_of_snapshot

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def orders(ctx, source):
    return source

@stage
def totals(ctx, orders):
    today = orders.groupBy("customer").agg(
        F.sum("amount").cast("decimal(18,2)").alias("total"), F.count("*").alias("orders")
    )
    after = (
        ctx.state.read("totals").unionByName(today).groupBy("customer")
        .agg(F.sum("total").cast("decimal(18,2)").alias("total"), F.sum("orders").alias("orders"))
    )
    ctx.state.put("totals", after)
    seen = ctx.state.read("days").unionByName(orders.select("day").distinct())
    ctx.state.put("days", seen)
    return after
"""
SOURCE = {"kind": "parquet", "path": "${lake}/days/*.parquet", "splits": 2, "incremental": True}
STATE = {
    "totals": {"key": "customer", "columns": {"customer": "bigint", "total": "decimal(18,2)", "orders": "bigint"}},
    "days": {"kind": "split", "columns": {"day": "date"}},
}
TOTALS = {"inputs": {"orders": {"exchange": "keyed", "key": "customer"}}, "partitions": 4, "state": STATE}
DAY = "2026-11-0{}"


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def pipeline(project: SmallProject, **totals):
    stages = {"orders": {"source": SOURCE, "output": {"type": "blocking"}}, "totals": {**TOTALS, **totals}}
    return project.pipeline("customers", stages, schedule="@daily", wave="30s")  # few waves: each of them takes seconds


def arrive(project: SmallProject, day: int, rows: int = 60) -> None:
    """A day's orders, customers that are NULL among them."""
    dice = random.Random(day)
    customers = [dice.choice([None, *range(40)]) for _ in range(rows)]
    amounts = [Decimal(dice.randrange(-10_000, 100_000)) / 100 for _ in range(rows)]
    table = pa.table(
        {
            "customer": pa.array(customers, pa.int64()),
            "amount": pa.array(amounts, pa.decimal128(12, 2)),
            "day": pa.array([f"2026-11-0{day}"] * rows).cast(pa.date32()),
        }
    )
    path = Path(project.settings.lake_uri) / "days" / f"{day}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)


def given(records) -> list[tuple]:
    """What the stage gave, read from its recorded files."""
    files = [f"{record.table}/{file.path}" for record in records["totals"] for file in record.files]
    return duckdb.sql(f"SELECT customer, total, orders FROM read_parquet({files}) ORDER BY ALL").fetchall()


def expected(project: SmallProject, *days: int) -> list[tuple]:
    files = [f"{project.settings.lake_uri}/days/{day}.parquet" for day in days]
    return duckdb.sql(
        "SELECT customer, sum(amount)::DECIMAL(18,2), count(*) "
        f"FROM read_parquet({files}) GROUP BY customer ORDER BY ALL"
    ).fetchall()


def test_totals_go_on_from_day_to_day(project):
    for day in (1, 2, 3):
        arrive(project, day)
        records = project.run(pipeline(project), f"run {day}", DAY.format(day))
        assert given(records) == expected(project, *range(1, day + 1))
    kept = [record.kept for record in records["totals"]]
    assert {part.after for parts in kept for part in parts} == {DAY.format(2)}
    again = project.run(pipeline(project), "again", DAY.format(2))
    assert [record.run_id for record in again["totals"]] == ["run 2"] * 4


def days_kept(records) -> list[str]:
    files = [f"{r.table}/{f.path}" for r in records["totals"] for p in r.kept if p.name == "days" for f in p.files]
    return sorted(str(day) for (day,) in duckdb.sql(f"SELECT day FROM read_parquet({files})").fetchall())


def test_other_partitions_go_on_with_the_same_state(project):
    for day, partitions in ((1, 4), (2, 6), (3, 3)):
        arrive(project, day)
        records = project.run(pipeline(project, partitions=partitions), f"run {day}", DAY.format(day))
        assert len([record for record in records["totals"] if record.partition < partitions]) == partitions
        assert given(records) == expected(project, *range(1, day + 1))
    other_groups = pipeline(project, partitions=5, max_parallelism=77)
    arrive(project, 4)
    records = project.run(other_groups, "run 4", DAY.format(4))
    assert given(records) == expected(project, 1, 2, 3, 4)
    assert len(days_kept(records)) == 4 + 6 + 3 + 5, "each partition adds the day, none is lost or doubled"


def test_a_missing_interval_is_named_and_nothing_is_computed(project):
    arrive(project, 1)
    project.run(pipeline(project), "run 1", DAY.format(1))
    arrive(project, 4)
    with pytest.raises(EarlierMissing, match=r"2026-11-02 has to run first.*--interval 2026-11-02"):
        project.run(pipeline(project), "run 4", DAY.format(4))
    assert project.records(pipeline(project), DAY.format(4)) == {}
    for day in (2, 3, 4):
        records = project.run(pipeline(project), f"run {day} again", DAY.format(day))
    assert given(records) == expected(project, 1, 4)


def test_a_day_that_comes_out_different_makes_later_days_run_again(project):
    arrive(project, 1)
    first = project.run(pipeline(project), "run 1", DAY.format(1))
    arrive(project, 2)
    project.run(pipeline(project), "run 2", DAY.format(2))
    corrected = Path(project.settings.project) / f"{Path(project.settings.project).name}.py"
    corrected.write_text(JOBS.replace("return source", "return source.withColumn('amount', F.col('amount') * 2)"))
    again = project.run(pipeline(project), "run 1 again", DAY.format(1))
    assert again["totals"][0].fingerprint != first["totals"][0].fingerprint
    corrected.write_text(JOBS)  # only what day 1 kept is other now
    with project.ledger() as ledger:
        plan = IntervalView.of_run(
            RunRequest(pipeline(project), "look", DAY.format(2), {}), ledger, project.settings
        ).plan
    assert {decision.action for decision in plan.of("totals")} == {Action.RUN}
    assert {str(decision.reason) for decision in plan.of("totals")} == {"what totals kept in 2026-11-01 changed"}
    records = project.run(pipeline(project), "run 2 again", DAY.format(2))
    doubled = duckdb.sql(
        f"SELECT customer, sum(amount * CASE day WHEN DATE '2026-11-01' THEN 2 ELSE 1 END)::DECIMAL(18,2), count(*) "
        f"FROM read_parquet('{project.settings.lake_uri}/days/*.parquet') GROUP BY customer ORDER BY ALL"
    ).fetchall()
    assert given(records) == doubled


def test_lost_state_is_healed_by_its_own_interval(project):
    for day in (1, 2):
        arrive(project, day)
        records = project.run(pipeline(project), f"run {day}", DAY.format(day))
    lost = records["totals"][1].kept[0].files[0]
    (Path(records["totals"][1].table) / lost.path).unlink()
    arrive(project, 3)
    with pytest.raises(EarlierMissing, match="2026-11-02 has to run first: it lacks what partitions 1 kept"):
        project.run(pipeline(project), "run 3", DAY.format(3))
    healed = project.run(pipeline(project), "heal", DAY.format(2))
    assert [record.run_id for record in healed["totals"]] == ["run 2", "heal", "run 2", "run 2"]
    assert given(project.run(pipeline(project), "run 3 again", DAY.format(3))) == expected(project, 1, 2, 3)


def test_a_restore_into_other_partitions_deals_rows_and_state_by_key(project):
    state = {**STATE, "all": {"kind": "union", "columns": {"day": "date"}}}
    for day in (1, 2):
        arrive(project, day)
        project.run(pipeline(project, state=state), f"run {day}", DAY.format(day))
    wider = pipeline(project, partitions=7, state=state)
    run_2 = CheckpointedRun("customers", DAY.format(2), "run 2")
    manifest = StoredCheckpoints(project.settings.lake_uri, run_2).address(1)
    restore = new_restore_of_snapshot("again", manifest, allow_non_restored=False)
    with project.ledger() as ledger:
        plan = IntervalView.of_run(
            RunRequest(wider, "again", DAY.format(2), {}, restore), ledger, project.settings
        ).plan
    assert {str(decision.reason) for decision in plan.of("totals")} == {
        "rows of the 4 restored partitions, dealt anew by their keys, and what its lists keep"
    }
    records = project.run(wider, "again", DAY.format(2), restore)
    assert given(records) == expected(project, 1, 2)
    assert len(days_kept(records)) == 4 + 4
    again = project.run(wider, "once more", DAY.format(2))
    assert {record.run_id for record in again["totals"]} == {"again"}, "dealt rows count like computed ones"
    arrive(project, 3)
    assert given(project.run(wider, "run 3", DAY.format(3))) == expected(project, 1, 2, 3)


KEYS = {
    "name": ("string", pa.string(), ["a", "a ", " a", "ä", "", "long" * 20, None]),
    "price": ("decimal(12,2)", pa.decimal128(12, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("99999.99"), None]),
    "born": ("date", pa.date32(), [date(1969, 12, 31), date(2024, 2, 29), None]),
    "weight": ("double", pa.float64(), [0.0, -0.0, 1.5, float("nan"), None]),
    "seen": ("timestamp", pa.timestamp("us", tz="UTC"), [datetime(2026, 3, 29, 2, 30, tzinfo=UTC), None]),
    "good": ("boolean", pa.bool_(), [True, False, None]),
}
COUNTING = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def events(ctx, source):
    return source

@stage
def counts(ctx, events):
    keys = ctx.params["keys"]
    today = events.groupBy(*keys).agg(F.count("*").alias("times"))
    after = ctx.state.read("counts").unionByName(today).groupBy(*keys).agg(F.sum("times").alias("times"))
    ctx.state.put("counts", after)
    return after.select(*[F.col(key).alias(key + "_now") for key in keys], "times")
"""


@pytest.mark.parametrize("seed", range(2))
def test_keys_of_any_type_and_nulls_are_found_again_however_it_is_cut(tmp_path, spark_remote, seed):
    """Random keys of one to three columns, another number of partitions each day, and days without rows."""
    dice = random.Random(seed)
    keys = dice.sample(sorted(KEYS), dice.randint(1, 3))
    project = SmallProject.make(tmp_path, spark_remote, COUNTING)
    columns = {**{key: KEYS[key][0] for key in keys}, "times": "bigint"}
    for day in (1, 2, 3):
        rows = dice.choice([0, 1, 80])
        values = {key: pa.array([dice.choice(KEYS[key][2]) for _ in range(rows)], KEYS[key][1]) for key in keys}
        path = Path(project.settings.lake_uri) / "days" / f"{day}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(values), path)
        stages = {
            "events": {"source": SOURCE, "output": {"type": "blocking"}},
            "counts": {
                "inputs": {"events": {"exchange": "keyed", "key": keys}},
                "key": [f"{key}_now" for key in keys],
                "partitions": dice.randint(1, 6),
                "max_parallelism": dice.choice([7, 64, 128]),
                "params": {"keys": keys},
                "state": {"counts": {"key": keys, "columns": columns}},
            },
        }
        declared = project.pipeline("counting", stages, schedule="@daily")
        records = project.run(declared, f"run {day}", DAY.format(day))["counts"][: stages["counts"]["partitions"]]
        files = [f"{record.table}/{file.path}" for record in records for file in record.files]
        now, then = (", ".join(text(key, f"{key}{end}") for key in keys) for end in ("_now", ""))
        given = f"FROM read_parquet('{path.parent}/*.parquet') GROUP BY ALL"
        wanted = duckdb.sql(f"SELECT {then}, count(*) {given}").fetchall()
        found = duckdb.sql(f"SELECT {now}, times FROM read_parquet({files})").fetchall() if files else []
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (keys, day)


def text(key: str, column: str) -> str:
    """What two zeros have in common, and a moment however Parquet has it."""
    forms = {"weight": f"({column} + 0.0)::VARCHAR", "seen": f"epoch_us({column})::VARCHAR"}
    return forms.get(key, f"{column}::VARCHAR")


def test_damaged_state_is_noticed_before_anything_is_made_from_it(project):
    arrive(project, 1)
    records = project.run(pipeline(project), "run 1", DAY.format(1))
    file = Path(records["totals"][2].table) / records["totals"][2].kept[0].files[0].path
    content = bytearray(file.read_bytes())
    content[4:40] = bytes(36)
    file.write_bytes(content)
    arrive(project, 2)
    stages = {"orders": {"source": SOURCE, "output": {"type": "blocking"}}, "totals": TOTALS}
    careful = project.pipeline("customers", stages, schedule="@daily", verify="always")
    with pytest.raises(EarlierMissing, match="it lacks what partitions 2 kept"):
        project.run(careful, "run 2", DAY.format(2))
    healed = project.run(careful, "heal", DAY.format(1))
    assert [record.run_id for record in healed["totals"]] == ["run 1", "run 1", "heal", "run 1"]
    assert given(project.run(careful, "run 2 again", DAY.format(2))) == expected(project, 1, 2)
