"""What a function does beside planning is seen, is kept to its call, and is undone when that ends."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from stagehold.errors import StageContractBroken
from stagehold.settings import PROJECT
from stagehold.spark.calls.call_watch import watch_of
from stagehold.spark.calls.request_effects import Habit
from stagehold.spark.calls.side_files import files_opened
from stagehold.spark.connect import all_settings, explained
from stagehold.spark.session.project_modules import as_active

pytestmark = pytest.mark.spark

HERE = Path(__file__).relative_to(PROJECT).as_posix()


@pytest.fixture
def watch(spark):
    with as_active(spark):
        yield watch_of(spark, str(PROJECT))


# What everyday code does with a frame, and how that counts; nothing for what only plans.
PLANS = {
    "sql": lambda frame: frame.sparkSession.sql("SELECT id FROM {rows}", rows=frame).where("id > 1").select("id"),
    "schema": lambda frame: frame.schema,
    "columns": lambda frame: frame.columns,
    "print schema": lambda frame: frame.printSchema(),
    "explain": lambda frame: frame.explain(),
    "literal frame": lambda frame: frame.sparkSession.createDataFrame([(1,)], "id long"),
    "large literal frame": lambda frame: frame.sparkSession.createDataFrame(pd.DataFrame({"id": range(200_000)})),
    "setting that is read": lambda frame: frame.sparkSession.conf.get("spark.sql.shuffle.partitions"),
    "name of the application": lambda frame: frame.sparkSession.builder.appName("mine").getOrCreate(),
    "random split": lambda frame: frame.randomSplit([0.5, 0.5], 7)[0].union(frame),
    "python function": lambda frame: frame.select(F.udf(lambda number: number, LongType())("id")),
}
HABITS = {
    Habit.ASKS: {
        "count": lambda frame: frame.count(),
        "collect": lambda frame: frame.collect(),
        "first of an aggregate": lambda frame: frame.agg(F.max("id")).first()[0],
        "take": lambda frame: frame.take(1),
        "tail": lambda frame: frame.tail(1),
        "show": lambda frame: frame.show(),
        "is empty": lambda frame: frame.isEmpty(),
        "pandas": lambda frame: frame.toPandas(),
        "arrow": lambda frame: frame.toArrow(),
        "iterator": lambda frame: list(frame.toLocalIterator()),
        "quantile": lambda frame: frame.approxQuantile("id", [0.5], 0.0),
        "correlation": lambda frame: frame.stat.corr("id", "id"),
        "local checkpoint": lambda frame: frame.localCheckpoint(),
        "to nowhere": lambda frame: frame.write.format("noop").mode("overwrite").save(),
        "input files": lambda frame: frame.inputFiles(),
        "show tables": lambda frame: frame.sparkSession.sql("SHOW TABLES"),
        "list tables": lambda frame: frame.sparkSession.catalog.listTables(),
        "pandas on spark": lambda frame: len(frame.pandas_api()),
    },
    Habit.NAMES: {
        "view": lambda frame: frame.createOrReplaceTempView("rows_of_test"),
        "global view": lambda frame: frame.createOrReplaceGlobalTempView("rows_of_test"),
        "view by sql": lambda frame: frame.sparkSession.sql("CREATE TEMP VIEW by_sql AS SELECT 1 AS one"),
        "dropped view": lambda frame: frame.sparkSession.catalog.dropTempView("nobody"),
    },
    Habit.REGISTERS: {
        "function": lambda frame: frame.sparkSession.udf.register("of_test", lambda number: number, LongType()),
    },
    Habit.KEEPS: {
        "cache": lambda frame: frame.cache(),
        "persist": lambda frame: frame.persist(),
        "cached table": lambda frame: frame.sparkSession.catalog.cacheTable("nobody"),
        "clear cache": lambda frame: frame.sparkSession.sql("CLEAR CACHE"),
    },
    Habit.SETS: {
        "set": lambda frame: frame.sparkSession.conf.set("spark.sql.ansi.enabled", "false"),
        "unset": lambda frame: frame.sparkSession.conf.unset("spark.sql.ansi.enabled"),
        "sql set": lambda frame: frame.sparkSession.sql("SET spark.sql.ansi.enabled=false"),
        "time zone": lambda frame: frame.sparkSession.sql("SET TIME ZONE 'Asia/Tokyo'"),
        "reset": lambda frame: frame.sparkSession.sql("RESET"),
        "variable": lambda frame: frame.sparkSession.sql("DECLARE VARIABLE of_test INT DEFAULT 1"),
        "sql function": lambda frame: frame.sparkSession.sql(
            "CREATE TEMPORARY FUNCTION sql_of_test(x INT) RETURNS INT RETURN x"
        ),
        "schema": lambda frame: frame.sparkSession.sql("USE default"),
        "catalog": lambda frame: frame.sparkSession.catalog.setCurrentDatabase("default"),
        "builder": lambda frame: frame.sparkSession.builder.config("spark.sql.ansi.enabled", "false").getOrCreate(),
    },
}
WRITES = {
    "parquet": lambda frame, path: frame.write.parquet(path),
    "save": lambda frame, path: frame.write.format("json").save(path),
    "table": lambda frame, path: frame.write.saveAsTable("of_test"),
    "second writer": lambda frame, path: frame.writeTo("of_test").create(),
    "insert": lambda frame, path: frame.sparkSession.sql("INSERT INTO nobody VALUES (1)"),
    "create": lambda frame, path: frame.sparkSession.sql("CREATE TABLE of_test AS SELECT 1 AS one"),
    "drop": lambda frame, path: frame.sparkSession.sql("DROP TABLE IF EXISTS of_test"),
    "directory": lambda frame, path: frame.sparkSession.sql(f"INSERT OVERWRITE DIRECTORY '{path}' SELECT 1"),
    "drop a lasting view": lambda frame, path: frame.sparkSession.sql("DROP VIEW IF EXISTS nobody"),
    "copy in sql": lambda frame, path: frame.sparkSession.sql(
        "WITH a AS (SELECT 1) INSERT INTO nobody SELECT * FROM a"
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_only_plans_is_no_habit(spark, watch, plan):
    frame = spark.range(3)
    with watch.calling("s", [frame]) as call:
        plan(frame)
    assert call.touches == []


@pytest.mark.parametrize(
    ("habit", "act"), [(habit, act) for habit, acts in HABITS.items() for act in acts.values()],
    ids=[name for acts in HABITS.values() for name in acts],
)  # fmt: skip
def test_what_else_a_function_does_is_seen_with_its_line_and_undone(spark, watch, habit, act):
    before = all_settings(spark), spark.catalog.listTables(), spark.catalog.currentDatabase()
    frame = spark.range(3)
    with watch.calling("s", [frame]) as call:
        act(frame)
    assert {touch.habit for touch in call.touches} == {habit}
    line = act.__code__.co_firstlineno
    assert all(f"{HERE}:{line}" <= touch.place <= f"{HERE}:{line + 2}" for touch in call.touches)
    watch.forget_kept()
    assert (all_settings(spark), spark.catalog.listTables(), spark.catalog.currentDatabase()) == before


@pytest.mark.parametrize("act", HABITS[Habit.SETS].values(), ids=HABITS[Habit.SETS])
def test_what_is_set_is_in_force_when_rows_are_computed_and_not_later(spark, watch, act):
    frame = spark.range(3)
    with watch.calling("s", [frame]) as call:
        act(frame)
        assert call.settled(call.bound(frame), read_on=False) is not frame
    assert call.at_once


ZONE = "spark.sql.session.timeZone"
SET_BACK = {
    "unset": lambda spark: spark.conf.unset(ZONE),
    "reset": lambda spark: spark.sql(f"RESET {ZONE}"),
    "set as before": lambda spark: spark.conf.set(ZONE, "UTC"),
    "set otherwise": lambda spark: spark.sql("SET TIME ZONE 'Asia/Tokyo'"),
}


def hours(spark):
    return spark.range(1).selectExpr("hour(timestamp_seconds(id)) AS h")


@pytest.mark.parametrize("back", SET_BACK.values(), ids=SET_BACK)
@pytest.mark.parametrize("later", [lambda frame: frame, lambda frame: frame.where("h >= 0")], ids=["as it is", "more"])
def test_a_frame_that_is_made_under_a_setting_which_is_set_back_is_refused(spark, watch, back, later):
    with watch.calling("s", []) as call:
        spark.conf.set(ZONE, "Asia/Kolkata")
        frame = hours(spark)
        back(spark)
        with pytest.raises(StageContractBroken, match=r"timeZone \(`set` at .*makes a frame.*before it returns"):
            call.bound(later(frame))


def test_a_view_made_under_a_setting_which_is_set_back_is_refused(spark, watch):
    with watch.calling("s", []) as call:
        spark.conf.set(ZONE, "Asia/Kolkata")
        hours(spark).createOrReplaceTempView("hours")
        spark.conf.unset(ZONE)
        with pytest.raises(StageContractBroken, match="makes a frame"):
            call.bound(spark.table("hours"))


def test_what_is_computed_before_a_setting_is_set_back_has_it(spark, watch):
    frame = spark.range(1)
    with watch.calling("s", [frame]) as call:
        spark.conf.set(ZONE, "Asia/Kolkata")
        kept, (answer,) = hours(spark).localCheckpoint(), hours(spark).first()
        spark.conf.unset(ZONE)
        rows = call.settled(call.bound(kept.crossJoin(frame.withColumn("answer", F.lit(answer)))), read_on=False)
    assert rows.first()["h"] == answer == 5


def test_a_setting_that_changes_no_result_may_be_set_back(spark, watch):
    with watch.calling("s", [], changes_results=[ZONE].__contains__) as call:
        spark.conf.set("spark.sql.shuffle.partitions", "3")
        frame = hours(spark)
        spark.conf.unset("spark.sql.shuffle.partitions")
        assert call.settled(call.bound(frame), read_on=False).count() == 1


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
def test_to_write_is_refused_before_anything_is_written(spark, watch, tmp_path, act):
    path = tmp_path / str(uuid4())
    with pytest.raises(StageContractBroken, match="`effects: allowed`"), watch.calling("s", []):
        act(spark.range(3), str(path))
    assert not path.exists()
    assert not spark.catalog.tableExists("of_test")


def test_a_function_that_caught_the_refusal_is_refused_all_the_same(spark, watch, tmp_path):
    frame = spark.range(3)
    with watch.calling("s", [frame]) as call, suppress(Exception):
        frame.write.parquet(str(tmp_path / "out"))
    with pytest.raises(StageContractBroken):
        call.settled(frame, read_on=False)


def test_who_may_write_does(spark, watch, tmp_path):
    with watch.calling("s", [], may_write=True):
        spark.range(3).write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3


def test_a_view_means_what_it_meant_whatever_gets_its_name_later(spark, watch):
    low, high = spark.range(3), spark.range(10, 13)
    with watch.calling("s", [low, high]) as call:
        low.createOrReplaceTempView("v")
        first, by_text = spark.table("v"), spark.sql("SELECT id FROM v")
        spark.sql("SELECT id + 1 AS id FROM v").createOrReplaceTempView("w")
        high.createOrReplaceTempView("v")
        second, nested = spark.read.table("V"), spark.sql("SELECT w.id FROM w JOIN v ON v.id = w.id + 9")
        frames = [call.settled(call.bound(frame), read_on=False) for frame in (first, by_text, second, nested)]
    assert [sorted(row.id for row in frame.collect()) for frame in frames] == [
        [0, 1, 2],
        [0, 1, 2],
        [10, 11, 12],
        [1, 2, 3],
    ]
    assert not spark.catalog.tableExists("v")


def test_rows_that_spark_keeps_stay_as_long_as_a_plan_may_name_them(spark, watch):
    with watch.calling("s", []) as call:
        spark.range(3).localCheckpoint().createOrReplaceTempView("v")
        gc.collect()
        frame = call.settled(call.bound(spark.sql("SELECT id FROM v")), read_on=False)
    gc.collect()
    assert frame.count() == 3
    watch.forget_kept()
    with pytest.raises(Exception, match="DATAFRAME_NOT_FOUND"):
        frame.count()


def test_a_function_s_name_that_sql_takes_is_given_back(spark, watch):
    with watch.calling("s", []):
        spark.udf.register("taken", lambda number: number, LongType())
    with watch.calling("s", []) as call:
        spark.sql("DROP TEMPORARY FUNCTION taken")
        spark.sql("CREATE TEMPORARY FUNCTION taken(x BIGINT) RETURNS BIGINT RETURN x + 1")
        frame = call.settled(call.bound(spark.range(3).selectExpr("taken(id) AS id")), read_on=False)
    assert [row.id for row in frame.collect()] == [1, 2, 3]
    assert [row.id for row in spark.range(3).selectExpr("taken(id) AS id").collect()] == [0, 1, 2]


def test_a_function_s_name_means_what_it_meant_whatever_is_registered_under_it_later(spark, watch):
    rows = spark.range(3)
    with watch.calling("s", [rows]) as call:
        frame = rows
        for step in (1, 10, 100):
            spark.udf.register("f", lambda number, step=step: number + step, LongType())
            frame = frame.withColumn(f"c{step}", F.expr("F(id)")).withColumn(f"d{step}", F.call_udf("f", "id"))
            frame.createOrReplaceTempView("t")
            frame = spark.sql(f"SELECT *, `f`(id) AS e{step} FROM t")
        spark.udf.register("f", lambda number: -number, LongType())
        settled = call.settled(call.bound(frame.where("id = 2")), read_on=False)
    (row,) = settled.collect()
    assert list(row)[1:] == [3, 3, 3, 12, 12, 12, 102, 102, 102]


def test_so_does_that_of_a_function_in_sql(spark, watch):
    rows = spark.range(3)
    with watch.calling("s", [rows]) as call:
        spark.sql("CREATE TEMPORARY FUNCTION g(x BIGINT) RETURNS BIGINT RETURN x + 1")
        frame = rows.withColumn("c", F.expr("g(id)"))
        spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION g(x BIGINT) RETURNS BIGINT RETURN x + 10")
        frame = frame.withColumn("d", F.expr("g(id)"))
        settled = call.settled(call.bound(frame.where("id = 2")), read_on=False)
    assert [tuple(row) for row in settled.collect()] == [(2, 3, 12)]
    assert not spark.catalog.functionExists("g")


def test_nothing_is_cached_that_the_next_session_would_find(spark, watch):
    rows = spark.range(3)
    with watch.calling("s", [rows]) as call:
        frame = rows.select((F.col("id") + 1).alias("id")).cache()
        spark.sql("CACHE LAZY TABLE kept AS SELECT id + 1 AS id FROM {rows}", rows=frame)
        settled = call.settled(call.bound(frame.join(spark.table("kept"), "id")), read_on=False)
        frame.unpersist()
    assert "InMemory" not in explained(settled)
    assert sorted(row.id for row in settled.collect()) == [2, 3]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM low JOIN most ON id = highest",
        "SELECT id FROM low WHERE id IN (SELECT highest FROM most)",
        "SELECT m.highest AS id FROM most m, low l, most n WHERE m.highest = l.id AND n.highest = l.id",
        "WITH low AS (SELECT * FROM low) SELECT max(id) AS id FROM low JOIN both USING (id)",
    ],
)
def test_a_view_is_found_beside_views_that_were_made_of_it(spark, watch, query):
    rows = spark.range(9)
    with watch.calling("s", [rows]) as call:
        rows.where("id < 4").createOrReplaceTempView("low")
        spark.sql("CREATE TEMP VIEW most AS SELECT max(id) AS highest FROM low")
        spark.sql("SELECT id FROM low JOIN most ON id <= highest").createOrReplaceTempView("both")
        found = call.bound(spark.sql(query))
    assert [row.id for row in found.collect()] == [3]


def test_a_view_is_found_where_case_matters(spark, watch):
    rows = spark.range(3)
    with watch.calling("s", [rows]) as call:
        rows.createOrReplaceTempView("Rows")
        frame = spark.sql("SELECT id FROM Rows")
        spark.conf.set("spark.sql.caseSensitive", "true")
        settled = call.settled(call.bound(frame.union(spark.table("Rows"))), read_on=False)
    assert settled.count() == 6


def test_what_is_no_query_finds_the_views_of_the_call(spark, watch):
    low = spark.range(3)
    with watch.calling("s", [low]) as call:
        low.createOrReplaceTempView("`my rows`")
        for text in ("CACHE TABLE `my rows`", "DESCRIBE `my rows`", "UNCACHE TABLE `my rows`", "DROP VIEW `my rows`"):
            spark.sql(text)
        spark.sql("CREATE TEMP VIEW `my rows` AS SELECT * FROM range(3)")
        frame = call.settled(call.bound(spark.sql("SELECT id FROM `My Rows`")), read_on=False)
    assert frame.count() == 3
    assert not spark.catalog.tableExists("`my rows`")


def test_files_that_python_opens_are_told(spark, watch, tmp_path):
    side = tmp_path / "side.csv"
    side.write_text("a\n1\n")
    with watch.calling("s", []) as call:
        side.read_text()
        pd.read_csv(side)
        (tmp_path / "out.txt").write_text("x")
    assert list(call.reads) == [("file", str(side))]
    assert call.reads["file", str(side)].startswith(f"{HERE}:")


def test_who_listens_inside_another_hears_for_itself(tmp_path):
    side = tmp_path / "side.csv"
    side.write_text("a")
    with files_opened(str(PROJECT)) as outer:
        with files_opened(str(PROJECT)) as inner:
            pass
        side.read_text()
    assert (list(outer), list(inner)) == ([str(side)], [])


def test_what_plans_read_beside_their_inputs_is_told(spark, watch, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "side"))
    given = spark.read.parquet(str(tmp_path / "side")).where("id > 0")
    with watch.calling("s", [given]) as call:
        given.createOrReplaceTempView("v")
        given.createOrReplaceTempView("`My rows`")
        more = spark.read.parquet(str(tmp_path / "side"))
        call.bound(given.join(more, "id").join(spark.sql("SELECT id FROM v JOIN `my rows` USING (id)"), "id"))
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM db.other").count()
    assert set(call.reads) == {("file", str(tmp_path / "side")), ("table", "db.other")}
