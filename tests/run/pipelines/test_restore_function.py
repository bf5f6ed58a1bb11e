"""What becomes of state when a stage declares it otherwise: refused with both shapes, or made anew by the stage's
restore function, by the command.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.run.faults import FaultAction, Point, StatePoint

pytestmark = [pytest.mark.spark, pytest.mark.one_story, pytest.mark.timeout(600)]

FIRST = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def orders(ctx, source):
    return source

@stage
def totals(ctx, orders):
    today = orders.groupBy("customer").agg(F.sum("amount").alias("total"))
    after = ctx.state.read("totals").unionByName(today).groupBy("customer").agg(F.sum("total").alias("total"))
    ctx.state.put("totals", after)
    ctx.state.put("days", ctx.state.read("days").unionByName(orders.select("day").distinct()))
    return after
"""
# Customers have names now, totals are exact, and the days that were seen are known to all partitions.
SECOND = """
from pyspark.sql import functions as F
from stagehold import stage

MADE

@stageHOW
def totals(ctx, orders):
    today = orders.groupBy("name").agg(F.sum("amount").alias("total"))
    both = ctx.state.read("totals").unionByName(today).groupBy("name")
    after = both.agg(F.sum("total").cast("decimal(20,2)").alias("total"))
    ctx.state.put("totals", after)
    ctx.state.put("seen", orders.select("day").distinct())
    return after.withColumn("seen", F.lit(ctx.state.read("seen").distinct().count()))

def named(column):
    return F.concat(F.lit("c-"), F.col(column)).alias("name")

@stage
def orders(ctx, source):
    return source.select("*", named("customer"))
"""
RIGHT = """
def restored(ctx, before):
    rows = before["totals"].select(named("customer"), F.col("total").cast("decimal(20,2)").alias("total"))
    return {"totals": rows, "seen": before["days"]}
"""
PIPELINE = """
pipeline: customers
schedule: "@daily"
wave: 100ms
stages:
  orders:
    job: {jobs}:orders
    source: {{kind: parquet, path: "${{lake}}/days/*.parquet", splits: 2, incremental: true}}
  totals:
    job: {jobs}:totals
    inputs: {{orders: {{exchange: keyed, key: {key}}}}}
    partitions: 4
    state: {{{state}}}
"""
THEN = (
    "totals: {key: customer, columns: {customer: bigint, total: bigint}}, days: {kind: split, columns: {day: string}}"
)
NOW = (
    'totals: {key: name, columns: {name: string, total: "decimal(20,2)"}}, seen: {kind: union, columns: {day: string}}'
)
DAYS = [f"2026-11-0{day}" for day in range(1, 4)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory, spark_remote):
    folder = tmp_path_factory.mktemp("customers")
    for path in ("pipelines", "suites"):
        (folder / "project" / path).mkdir(parents=True)
    bench = Workbench.of(folder, spark_remote)
    for number, day in enumerate(DAYS, 1):
        path = Path(bench.settings.lake_uri) / "days" / f"{day}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {"customer": [*range(40)] * number, "amount": [*range(40 * number)], "day": [day] * 40 * number}
        pq.write_table(pa.table(rows), path.with_suffix(".later"))
    return bench


def arrive(bench: Workbench, day: str) -> None:
    path = Path(bench.settings.lake_uri) / "days" / f"{day}.later"
    path.rename(path.with_suffix(".parquet"))


def declare(bench: Workbench, code: str, key: str, state: str) -> None:
    (Path(bench.settings.project) / "customer_jobs.py").write_text(code)
    text = PIPELINE.format(jobs="customer_jobs", key=key, state=state)
    (Path(bench.settings.pipelines) / "customers.yaml").write_text(text)


def otherwise(bench: Workbench, made: str, how: str = "(restore=restored)") -> None:
    declare(bench, SECOND.replace("MADE", made).replace("HOW", how), "name", NOW)


def run(bench: Workbench, day: str, *words: str) -> Ended:
    return ended(bench.command("run", "customers", "--interval", day, "--json", *words))


def records(bench: Workbench, day: str) -> tuple[PartitionRecord, ...]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.partitions.newest_of("customers", day).get("totals", ())


def given(bench: Workbench, day: str) -> list[tuple[str, int, int]]:
    files = [f"{record.table}/{file.path}" for record in records(bench, day) for file in record.files]
    return duckdb.sql(f"SELECT name, total::BIGINT, seen FROM read_parquet({files}) ORDER BY ALL").fetchall()


def expected(bench: Workbench, days: list[str], seen: int) -> list[tuple[str, int, int]]:
    files = [f"{bench.settings.lake_uri}/days/{day}.parquet" for day in days]
    query = f"SELECT 'c-' || customer, sum(amount)::BIGINT, {seen} FROM read_parquet({files}) GROUP BY ALL ORDER BY ALL"
    return duckdb.sql(query).fetchall()


def test_state_of_another_shape_is_refused_with_both(bench):
    declare(bench, FIRST, "customer", THEN)
    arrive(bench, DAYS[0])
    assert run(bench, DAYS[0]).code == 0
    otherwise(bench, "", "")
    arrive(bench, DAYS[1])
    refused = run(bench, DAYS[1])
    told = " ".join(refused.err.split())
    assert refused.code != 0
    assert "its state totals is declared as keyed by name, columns name string, total decimal(20,2)" in told
    assert "2026-11-01 kept it as keyed by customer, columns customer bigint, total bigint" in told
    assert "`@stage(restore=...)`, or give the state another name" in told
    assert records(bench, DAYS[1]) == ()


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("return [before['totals']]", "its restore function returned list, not frames by name; give {'totals': frame"),
        ("return {'total': before['totals']}", "its restore function gives total, which it does not keep; allowed: to"),
        ("return {'totals': 3}", "what its restore function gives as totals is int, not a frame"),
        (
            "return {'totals': before['totals']}",
            "its restore function gives as totals has the columns customer bigint, total bigint; declared are name",
        ),
        ("return {'seen': before['days']}", "its state totals is declared as keyed by name"),
        ("return before['sums']", "customer_jobs.py:6"),
        ("before['totals'].write.parquet('/tmp/x'); return {}", "writes"),
    ],
)
def test_a_restore_function_that_gives_something_else_is_told_what(bench, made, told):
    otherwise(bench, f"def restored(ctx, before):\n    {made}")
    refused = run(bench, DAYS[1])
    assert refused.code != 0
    assert told in " ".join(refused.err.split())
    assert records(bench, DAYS[1]) == ()


def test_it_makes_the_new_state_of_the_old_and_kills_leave_nothing_half(bench):
    otherwise(bench, RIGHT)
    for point, wave in ((StatePoint.BEFORE_STATE, 1), (Point.AFTER_PUBLISH, 2)):
        bench.inject(point, "totals", wave, FaultAction.KILL)
        assert killed(run(bench, DAYS[1]))
    done = run(bench, DAYS[1])
    assert done.code == 0, done.err
    assert given(bench, DAYS[1]) == expected(bench, DAYS[:2], seen=1)
    assert run(bench, DAYS[1]).counts[1] == 0


def test_the_next_interval_goes_on_without_it(bench):
    """It could make nothing of what has the new shape."""
    arrive(bench, DAYS[2])
    done = run(bench, DAYS[2])
    assert done.code == 0, done.err
    assert given(bench, DAYS[2]) == expected(bench, DAYS, seen=1)


def test_other_code_of_it_computes_what_it_made_again(bench):
    twice = RIGHT.replace('F.col("total")', '(2 * F.col("total"))')
    otherwise(bench, twice)
    again = run(bench, DAYS[1])
    assert again.counts == (2, 4), again.err
    doubled = {name: total for name, total, _ in given(bench, DAYS[1])}
    first, both = ({name: total for name, total, _ in expected(bench, DAYS[:many], 1)} for many in (1, 2))
    assert doubled == {name: both[name] + first[name] for name in both}
