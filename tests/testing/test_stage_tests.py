"""Stages called with rows of a test, in a project as its author has it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.settings import load_settings
from stagehold.spark.session.project_modules import as_active
from stagehold.testing.stage_tests import StageTests

pytestmark = pytest.mark.spark
JOBS = """
from pyspark.sql import Window, functions as F
from stagehold import stage

@stage
def orders(ctx, source):
    return source.where(F.col("amount") > ctx.params["least"]).withColumn("day", F.lit(ctx.interval))

@stage
def numbered(ctx, orders):
    return orders.withColumn("place", F.row_number().over(Window.orderBy("id")))

@stage
def totals(ctx, orders, rates):
    joined = orders.join(rates, "country", "left")
    return joined.groupBy("who").agg(F.sum(F.col("amount") * F.col("rate")).cast("decimal(10,2)").alias("total"))

@stage
def balance(ctx, totals):
    before = ctx.state.read("known")
    both = totals.join(before, "who", "full")
    total = F.coalesce("total", F.lit(0)) + F.coalesce("sum", F.lit(0))
    after = both.select("who", total.cast("decimal(10,2)").alias("sum"))
    ctx.state.put("known", after)
    return after

@stage
def fetched(ctx, orders):
    return orders.withColumn("token", F.lit(ctx.secret("token"))).withColumn("key", F.lit(ctx.secret("key")))

@stage
def nothing(ctx, orders):
    orders.show()
"""
PIPELINE = """
pipeline: shop
schedule: "@daily"
params: {least: 1}
secrets: [token, key]
stages:
  orders:
    job: shop_jobs:orders
    source: {kind: csv, path: "${lake}/orders/*.csv", header: true, splits: 2,
             schema: "id bigint, who string, country string, amount decimal(10,2), at date"}
  numbered: {job: "shop_jobs:numbered", inputs: {orders: forward}}
  tidy: {sql: sql/tidy.sql, inputs: {orders: forward}}
  rates: {job: "shop_jobs:numbered", inputs: {orders: forward}}
  totals:
    job: shop_jobs:totals
    inputs: {orders: {exchange: keyed, key: who}, rates: broadcast}
    partitions: 2
  balance:
    job: shop_jobs:balance
    inputs: {totals: {exchange: keyed, key: who}}
    partitions: 2
    state: {known: {key: who, columns: {who: string, sum: "decimal(10,2)"}}}
  fetched: {job: "shop_jobs:fetched", inputs: {orders: forward}}
  nothing: {job: "shop_jobs:nothing", inputs: {orders: forward}}
  old: {script: jobs/old_job.py, inputs: {orders: gather}, args: ["${params.least}", "${inputs.orders}", "${output}"]}
"""
SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
least, orders, output = sys.argv[1:]
spark.read.parquet(orders).where(f"CAST(amount AS DOUBLE) > {least}").write.parquet(output)
spark.stop()
"""
ORDERS = [
    {"id": 1, "who": "ann", "country": "de", "amount": "5.00", "at": "2026-11-20"},
    {"id": 2, "who": "bob", "country": "fr", "amount": "0.50"},
    {"id": 3, "who": "ann", "country": "fr", "amount": "2.50"},
]


@pytest.fixture(scope="module")
def stages(spark, tmp_path_factory) -> StageTests:
    folder: Path = tmp_path_factory.mktemp("shop")
    for place in ("include/pipelines", "sql", "data", "jobs"):
        (folder / place).mkdir(parents=True)
    (folder / "shop_jobs.py").write_text(JOBS)
    (folder / "jobs" / "old_job.py").write_text(SCRIPT)
    (folder / "sql" / "tidy.sql").write_text("SELECT id, upper(who) AS who, :interval_end AS end FROM orders")
    (folder / "include" / "pipelines" / "shop.yaml").write_text(PIPELINE)
    (folder / "data" / "orders.csv").write_text("id,who,country,amount,at\n7,eve,de,3.00,2026-11-21\n")
    pq.write_table(pa.table({"id": [8], "who": ["dan"]}), folder / "data" / "orders.parquet")
    return StageTests(spark, load_settings({}, str(folder)))


def test_rows_have_the_columns_of_the_source_and_texts_are_read_as_in_a_file(stages):
    result = stages.run("orders", ORDERS, interval="2026-11-20", params={"least": 2})
    result.assert_rows(
        [{"id": 1, "at": date(2026, 11, 20), "day": "2026-11-20"}, {"id": 3, "at": None, "day": "2026-11-20"}]
    )
    assert result.columns == ("id", "who", "country", "amount", "at", "day")
    assert result.uncut is None
    stages.run("orders", []).assert_rows([])


def test_what_differs_is_told_with_the_rows(stages):
    result = stages.run("shop.orders", {"source": ORDERS}, params={"least": 4})
    with pytest.raises(AssertionError, match=r"1 rows missing, 1 unexpected, 0 alike\n  - id=1  >amount=6.00\n"):
        result.assert_rows([{"id": 1, "amount": Decimal("6.00")}])
    with pytest.raises(UnknownName, match="amuont"):
        result.assert_rows([{"amuont": 1}])


def test_files_and_frames_are_inputs_too(stages, spark):
    stages.run("orders", "data/orders.csv").assert_rows([{"id": 7, "amount": Decimal("3.00")}])
    stages.run("tidy", "data/orders.parquet", interval="2026-11-20").assert_rows(
        [(8, "DAN", datetime.fromisoformat("2026-11-21T00:00:00+00:00"))]
    )
    stages.run("tidy", spark.createDataFrame([], "id bigint, who string")).assert_rows([])


def test_keys_stay_together_and_what_is_broadcast_is_given_to_each_part(stages):
    orders = [{**row, "amount": Decimal(row["amount"]), "at": None} for row in ORDERS]
    given = {"orders": [{name: row[name] for name in ("id", "who", "country", "amount")} for row in orders]}
    rates = [{"country": "de", "rate": Decimal("2")}, {"country": "fr", "rate": Decimal("1")}]
    stages.run("totals", {**given, "rates": rates}, cuts=6).assert_rows(
        [("ann", Decimal("12.50")), ("bob", Decimal("0.50"))]
    )


def test_a_function_whose_answer_follows_from_how_it_was_cut_is_refused_with_the_rows(stages):
    rows = [{"id": number} for number in range(5)]
    with pytest.raises(AssertionError) as refused:
        stages.run("numbered", rows)
    text = str(refused.value)
    assert "the answer of numbered follows from how its rows were cut into partitions (orders: [" in text
    assert ">place=" in text
    assert "cuts=0 calls it once" in text
    assert [row["place"] for row in stages.run("numbered", rows, cuts=0).rows] == [1, 2, 3, 4, 5]


def test_state_is_given_and_what_is_left_is_told_and_the_first_day_finds_none(stages):
    first = stages.run("balance", [{"who": "ann", "total": Decimal("2.00")}])
    assert (first.uncut, first.state["known"]) == ("it keeps state", [{"who": "ann", "sum": Decimal("2.00")}])
    second = stages.run(
        "balance", [{"who": "ann", "total": Decimal("1.00")}], state={"known": [{"who": "ann", "sum": "2.00"}]}
    )
    second.assert_rows([("ann", Decimal("3.00"))])
    with pytest.raises(UnknownName, match="knwon"):
        stages.run("balance", [{"who": "ann", "total": Decimal("1.00")}], state={"knwon": []})


@pytest.mark.parametrize(
    ("name", "inputs", "error", "why"),
    [
        ("ordres", [], UnknownName, "Known: shop.orders, shop.numbered"),
        ("totals", {"orders": [{"who": "a"}]}, InvalidArgument, "nothing for rates"),
        ("totals", {"order": []}, UnknownName, "order"),
        ("tidy", [], InvalidArgument, "no rows for orders.*a frame, such as spark.createDataFrame"),
        ("tidy", "data/orders.txt", InvalidArgument, "ends in .csv or .parquet"),
        ("orders", [{"amuont": 1}], UnknownName, "amuont"),
    ],
)
def test_what_cannot_be_called_is_told_with_what_can(stages, name, inputs, error, why):
    with pytest.raises(error, match=why):
        stages.run(name, inputs)


def test_a_function_that_returns_no_frame_is_refused(stages):
    with pytest.raises(AssertionError, match="nothing returned nothing; return the DataFrame"):
        stages.run("nothing", [{"id": 1}])


def test_a_script_is_run_once_and_what_it_writes_is_its_answer(stages, spark):
    with as_active(spark):
        result = stages.run("old", ORDERS, params={"least": 2})
    result.assert_rows([{"id": 1}, {"id": 3}])
    assert result.uncut == "it is a script, which is run once"


def test_secrets_are_those_of_the_test_and_others_stand_for_themselves(stages, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_SECRET_KEY", "the-real-one")
    result = stages.run("fetched", [{"id": 1}], secrets={"token": "for-tests"})
    result.assert_rows([{"token": "for-tests", "key": "test-key"}])
    with pytest.raises(UnknownName, match="tokken"):
        stages.run("fetched", [{"id": 1}], secrets={"tokken": "x"})
