"""Real files, tables and a real database (Derby, which comes with Spark), read by Spark split by split."""

from __future__ import annotations

import gzip
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.sources.made_sources import reading_of

from stagehold.errors import SourceUnusable
from stagehold.sources.source_reading import SourceFrames

pytestmark = pytest.mark.spark


@pytest.fixture
def frames(spark, tmp_path):
    def open_source(**fields) -> SourceFrames:
        return SourceFrames(spark, "orders", reading_of(tmp_path, **{"path": "${lake}", **fields}))

    return open_source


def rows(source: SourceFrames, partition: int) -> list[tuple]:
    return sorted(map(tuple, source.frame(partition).collect()), key=repr)


def test_parquet_files_may_have_any_name(frames, tmp_path):
    for number, name in enumerate(["a b[1]{x}*.parquet", "b%20?.parquet", "c/day/d.parquet"]):
        Path(tmp_path, name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [number]}), tmp_path / name)
    source = frames(kind="parquet", splits=4)
    assert [rows(source, partition) for partition in range(4)] == [[(0,)], [], [(1,)], [(2,)]]
    assert source.frame(1).schema == source.frame(0).schema


def test_splits_of_one_plain_file_each_can_be_read_together(frames, tmp_path):
    for name in "abc":
        pq.write_table(pa.table({"n": [name]}), tmp_path / f"{name}-1.parquet")
    source = frames(kind="parquet", splits=3)
    frame, partition = source.together((0, 2))
    found = frame.withColumn("partition", partition).collect()
    assert sorted(map(tuple, found)) == [(row.n, split) for split in (0, 2) for row in source.frame(split).collect()]


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], ["a b", "c"], ["a/d", "b/d"], ["ä", "b"]],
    ids=["several", "spaces", "same name", "no ASCII"],
)
def test_other_splits_cannot_be_read_together(frames, tmp_path, names):
    for name in names:
        Path(tmp_path, name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [name]}), tmp_path / f"{name}.parquet")
    assert frames(kind="parquet", path="${lake}").together((0, 1)) is None


def test_a_source_with_a_column_that_hides_the_file_is_not_read_together(frames, tmp_path):
    for name in "ab":
        pq.write_table(pa.table({"n": [name], "_metadata": [name]}), tmp_path / f"{name}.parquet")
    assert frames(kind="parquet").together((0, 1)) is None


CSV = "id int, name string, price decimal(10,2)"


def test_csv_files_have_the_declared_columns_in_every_split(frames, tmp_path):
    (tmp_path / "a.csv").write_text("id;name;price\n1;'x;y';2.50\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"id;name;price\n2;;\n"))
    source = frames(kind="csv", ddl=CSV, header=True, delimiter=";", options={"quote": "'"})
    assert [
        [(row.id, row.name, str(row.price)) for row in source.frame(partition).collect()] for partition in (0, 1)
    ] == [
        [(1, "x;y", "2.50")],
        [(2, None, "None")],
    ]
    assert source.frame(0).schema == source.frame(1).schema


@pytest.mark.parametrize(
    ("content", "used", "fields"),
    [
        ("1,x,2.50\n2,y\n", "name", {}),
        ("1,x,2.50\nlots,y,1\n", "id", {}),
        ("name,id,price\nx,1,2.50\n", "price", {"header": True}),
    ],
    ids=["a column too few", "text for a number", "columns in another order"],
)
def test_csv_that_does_not_fit_the_schema_fails(frames, tmp_path, content, used, fields):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(PySparkException):
        frames(kind="csv", ddl=CSV, splits=1, **fields).frame(0).select(used).collect()


def test_corrupt_records_pass_only_when_asked_to(frames, tmp_path):
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": \n')
    with pytest.raises(PySparkException):
        frames(kind="json", ddl="id int", splits=1).frame(0).collect()
    assert rows(frames(kind="json", ddl="id int", splits=1, options={"mode": "DROPMALFORMED"}), 0) == [(1,)]


def test_json_columns_are_declared_or_inferred_from_the_first_file(frames, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"id": 1, "tags": ["x"]}))
    (tmp_path / "b.json").write_text(json.dumps({"id": 2}))
    assert [rows(frames(kind="json", ddl="infer"), partition) for partition in (0, 1)] == [[(1, ["x"])], [(2, None)]]
    assert rows(frames(kind="json", ddl="id bigint, other date"), 0) == [(1, None)]


def test_a_delta_table_is_read_with_the_columns_its_files_do_not_hold(frames, tmp_path):
    uri = str(tmp_path / "table")
    for number, place in enumerate(["a b:c%d/é", "x", None]):
        content = {
            "_interval": ["i"],
            "place": pa.array([place], pa.string()),
            "day": pa.array([number], pa.date32()),
            "odd `name": [number],
        }
        write_deltalake(uri, pa.table(content), partition_by=["place", "day"], mode="append")
    source = frames(kind="delta", path="${lake}/table", splits=1)
    assert [(place, day.day, number) for place, day, number in rows(source, 0)] == [
        ("a b:c%d/é", 1, 0),
        ("x", 2, 1),
        (None, 3, 2),
    ]
    assert source.frame(0).columns == ["place", "day", "odd `name"]  # a column of ours is no content
    empty = frames(kind="delta", path="${lake}/table", splits=9)
    assert [len(rows(empty, partition)) for partition in range(9)].count(0) == 6
    assert empty.frame(0).schema == empty.frame(1).schema


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_files_of_other_formats_are_read_split_by_split_and_together(spark, frames, tmp_path, kind):
    columns = "id", "'ä' || id AS name", "CAST(id AS DECIMAL(9,2)) AS price", "named_struct('part', id) AS item"
    for number in range(3):
        place = f"{tmp_path}/day=2026-11-2{number}"
        spark.range(10 * number, 10 * number + 3).selectExpr(*columns).coalesce(1).write.format(kind).save(place)
    source = frames(kind=kind, path=f"${{lake}}/**/*.{kind}", splits=3)
    found = [rows(source, partition) for partition in range(3)]
    assert [len(of_split) for of_split in found] == [3, 3, 3]
    assert found[1][0] == (10, "ä10", Decimal("10.00"), (10,), date(2026, 11, 21))
    empty = frames(kind=kind, path=f"${{lake}}/**/*.{kind}", splits=9).frame(0)
    assert (empty.collect(), empty.schema) == ([], source.frame(0).schema)
    together = frames(kind=kind, path=f"${{lake}}/day=2026-11-20/*.{kind}", splits=1).together((0,))
    assert together is not None
    assert together[0].count() == 3


def test_orc_files_with_other_columns_are_united_by_name_and_cut_by_their_folders(spark, frames, tmp_path):
    for number, columns in enumerate((("id", "CAST(id AS INT) AS n"), ("id", "id AS n", "'x' AS more"))):
        place = f"{tmp_path}/day=2026-11-2{number}"
        spark.range(2).selectExpr(*columns).coalesce(1).write.orc(place)
    source = frames(kind="orc", path="${lake}/**/*.orc", splits=2)
    assert [kind for _, kind in source.frame(0).dtypes] == ["bigint", "bigint", "string", "date"]
    assert [row[2] for split in (0, 1) for row in rows(source, split)] == [None, None, "x", "x"]
    of_a_day = frames(kind="orc", path="${lake}/**/*.orc", splits=1, where="day = DATE '2026-11-21' AND n > 0")
    assert rows(of_a_day, 0) == [(1, 1, "x", date(2026, 11, 21))]
    assert [file.path.split("/")[-2] for file in of_a_day.reading.splits[0].files] == ["day=2026-11-21"]


def test_avro_files_have_the_columns_that_are_declared(spark, frames, tmp_path):
    for number, columns in enumerate((("id",), ("id", "'x' AS more"))):
        spark.range(2).selectExpr(*columns).coalesce(1).write.format("avro").save(f"{tmp_path}/{number}")
    source = frames(kind="avro", path="${lake}/**/*.avro", splits=2, ddl="more string, id bigint")
    assert [rows(source, split) for split in (0, 1)] == [[(None, 0), (None, 1)], [("x", 0), ("x", 1)]]


def test_whatever_spark_reads_from_files_by_a_format_is_read_with_its_options(frames, tmp_path):
    for number in (1, 2):
        order = f"<order><id>{number}</id><name>n{number}</name></order>"
        (tmp_path / f"{number}.xml").write_text(f"<orders>{order}</orders>")
    source = frames(kind="spark", format="xml", options={"rowTag": "order"}, splits=2, ddl="id bigint, name string")
    assert [rows(source, split) for split in (0, 1)] == [[(1, "n1")], [(2, "n2")]]
    lines = frames(kind="spark", format="text", options={"lineSep": "<"}, splits=2)
    parts = ("", "orders>", "order>", "id>2", "/id>", "name>n2", "/name>", "/order>", "/orders>")
    assert rows(lines, 1) == [(text,) for text in sorted(parts)]
    assert lines.together((0, 1)) is None


def test_rows_that_a_format_gives_without_files_are_read_by_conditions_with_secrets(spark, tmp_path, database):
    asked = []
    fields = {"kind": "spark", "format": "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider"}
    options = {"url": database, "dbtable": "orders", "user": "app"}
    reading = reading_of(
        tmp_path,
        **fields,
        path=None,
        options=options,
        secret_options={"password": "shop"},
        splits=["ID < 5", "ID >= 5", "ID IS NULL"],
    )
    source = SourceFrames(spark, "orders", reading, lambda name: asked.append(name) or "the-password")
    assert ids(source, 3) == [[*range(-5, 3), 4], [*range(5, 15)], [None]]
    assert set(asked) == {"shop"}
    other = reading_of(tmp_path, **fields, path=None, options=options, splits=["ID < 5", "ID >= 5", "ID IS NULL"])
    assert other.splits[0].fingerprint != reading.splits[0].fingerprint


@pytest.fixture
def mended_table(spark, tmp_path) -> str:
    """A table of Spark's with deletion vectors, of which rows were deleted and columns renamed and dropped."""
    uri = f"delta.`{tmp_path}/table`"
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    kept = "item STRUCT<name: STRING, of: ARRAY<STRUCT<part: INT>>>"
    columns = f"id BIGINT, day DATE, {kept}, old STRING"
    spark.sql(f"CREATE TABLE {uri} ({columns}) USING delta PARTITIONED BY (day) TBLPROPERTIES ({mapped})")
    for day in ("2026-11-20", "2026-11-21"):
        made = (
            "id, DATE '{}' AS day, named_struct('name', 'n' || id, 'of', array(named_struct('part', CAST(id AS INT))))"
        )
        rows = f"SELECT {made.format(day)} AS item, 'x' AS old FROM range(0, 1000, 1, 1)"
        spark.sql(f"INSERT INTO {uri} {rows}")
    spark.sql(f"DELETE FROM {uri} WHERE id % 3 = 0 AND day = '2026-11-20'")
    spark.sql(f"ALTER TABLE {uri} RENAME COLUMN day TO sold")
    spark.sql(f"ALTER TABLE {uri} RENAME COLUMN item.name TO label")
    spark.sql(f"ALTER TABLE {uri} DROP COLUMN old")
    spark.sql(f"ALTER TABLE {uri} ADD COLUMN day STRING")
    return uri


def test_rows_that_a_delta_table_has_deleted_are_not_read_and_columns_are_called_as_it_calls_them(
    spark, frames, mended_table
):
    source = frames(kind="delta", path="${lake}/table", splits=2)
    wanted = spark.sql(f"SELECT * FROM {mended_table}")
    assert sorted([*rows(source, 0), *rows(source, 1)], key=repr) == sorted(map(tuple, wanted.collect()), key=repr)
    assert [source.frame(split).schema.simpleString() for split in (0, 1)] == [wanted.schema.simpleString()] * 2
    assert not any(field.metadata for field in source.frame(0).schema.fields)
    assert source.together((0, 1)) is None
    later = frames(kind="delta", path="${lake}/table", splits=1, where="sold = DATE '2026-11-20' AND id < 10")
    assert [row[0] for row in rows(later, 0)] == [1, 2, 4, 5, 7, 8]


def test_rows_of_one_interval_of_a_published_table_are_read_without_the_column_that_says_so(frames, tmp_path):
    for interval in ("2026-11-20", "2026-11-21"):
        rows_of = pa.table({"_interval": [interval] * 2, "n": [1, int(interval[-2:])]})
        write_deltalake(str(tmp_path / "table"), rows_of, partition_by=["_interval"], mode="append")
    source = frames(kind="delta", path="${lake}/table", splits=1, where="_interval = '2026-11-21' AND n > 1")
    assert (rows(source, 0), source.frame(0).columns) == ([(21,)], ["n"])


def test_a_deleted_row_makes_another_split_of_its_file_and_of_no_other(spark, frames, mended_table):
    before = frames(kind="delta", path="${lake}/table", splits=2).reading.splits
    spark.sql(f"DELETE FROM {mended_table} WHERE id = 500 AND sold = '2026-11-21'")
    after = frames(kind="delta", path="${lake}/table", splits=2).reading.splits
    assert [one.fingerprint == other.fingerprint for one, other in zip(before, after, strict=True)].count(True) == 1
    assert [one.files == other.files for one, other in zip(before, after, strict=True)].count(True) == 1


def test_what_commits_added_is_read_with_the_names_that_the_table_has_now(spark, frames, mended_table):
    added = frames(kind="delta", path="${lake}/table", splits=1, from_version=1, to_version=2)
    assert len(rows(added, 0)) == 2000
    assert {str(row[1]) for row in rows(added, 0)} == {"2026-11-20", "2026-11-21"}


@pytest.fixture(scope="module")
def database(spark, tmp_path_factory) -> str:
    url = f"jdbc:derby:{tmp_path_factory.mktemp('derby')}/db"
    frame = spark.range(-5, 15).select(
        F.when(F.col("id") != 3, F.col("id")).alias("ID"),
        F.date_add(F.lit("2024-01-01").cast("date"), F.col("id").cast("int")).alias("DAY"),
    )
    frame.coalesce(1).write.jdbc(f"{url};create=true", "orders")
    return url


def ids(source: SourceFrames, count: int) -> list[list[int | None]]:
    return [
        sorted((row[0] for row in source.frame(partition).collect()), key=lambda id: -99 if id is None else id)
        for partition in range(count)
    ]


def test_a_database_table_is_read_by_ranges_and_each_row_once(frames, database):
    source = frames(kind="jdbc", url=database, path=None, table="orders", column="ID", lower=0, upper=10, splits=3)
    assert ids(source, 3) == [[None, -5, -4, -3, -2, -1, 0, 1, 2], [4, 5], [6, 7, 8, 9, 10, 11, 12, 13, 14]]
    days = frames(
        kind="jdbc",
        url=database,
        path=None,
        table="orders",
        column="DAY",
        lower="2024-01-01",
        upper="2024-01-11",
        splits=2,
    )
    assert ids(days, 2) == [[None, -5, -4, -3, -2, -1, 0, 1, 2, 4], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]]


def test_a_query_is_read_by_conditions(frames, database, monkeypatch):
    monkeypatch.setenv("DATABASE_USER", "app")
    source = frames(
        kind="jdbc",
        url=database,
        path=None,
        driver="org.apache.derby.iapi.jdbc.AutoloadedDriver",
        query="select ID from orders where ID > 0",
        splits=["ID < 5", "ID >= 5"],
        user_variable="DATABASE_USER",
        options={"fetchsize": "10"},
    )
    assert ids(source, 2) == [[1, 2, 4], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]]


def test_a_secret_of_the_pipeline_is_the_password(spark, database, tmp_path):
    """Derby takes a user's password from its own settings, so it is enough that Spark was given it."""
    fields = {"kind": "jdbc", "url": database, "path": None, "table": "orders", "splits": 1}
    reading = reading_of(tmp_path, **fields, password_secret="shop")
    asked = []
    source = SourceFrames(spark, "orders", reading, lambda name: asked.append(name) or "the-password")
    assert ids(source, 1) == [[None, *range(-5, 3), *range(4, 15)]]
    assert asked == ["shop"]


def test_a_password_that_is_not_there_is_an_error_that_names_its_variable(frames, database):
    source = frames(
        kind="jdbc", url=database, path=None, table="orders", splits=1, password_variable="NO_SUCH_PASSWORD"
    )
    with pytest.raises(SourceUnusable, match="NO_SUCH_PASSWORD is not set"):
        source.frame(0)


def test_parquet_files_with_other_columns_are_united_by_name_and_widened(frames, tmp_path):
    """A row of each file that a later one has wider, or lacks; values stay what they are."""
    first = {
        "whole": pa.array([2**31 - 1], pa.int32()),
        "real": pa.array([1.5], pa.float32()),
        "count": pa.array([7], pa.int16()),
        "price": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
        "day": pa.array([date(2026, 3, 29)], pa.date32()),
        "part": pa.array([{"x": 1}]),
        "old": pa.array(["a"]),
    }
    second = {
        "Whole": pa.array([2**40], pa.int64()),
        "real": pa.array([0.1], pa.float64()),
        "count": pa.array([2.5], pa.float64()),
        "price": pa.array([Decimal("123456.7891")], pa.decimal128(10, 4)),
        "day": pa.array([datetime(2026, 3, 29, 1, 30)], pa.timestamp("us")),
        "part": pa.array([{"y": "z", "x": 2**40}]),
        "new": pa.array(["b"]),
    }
    for name, columns in (("a", first), ("b", second)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    source = frames(kind="parquet")
    kinds = [
        "bigint",
        "double",
        "double",
        "decimal(10,4)",
        "timestamp_ntz",
        "struct<x:bigint,y:string>",
        *["string"] * 2,
    ]
    assert [kind for _, kind in source.frame(0).dtypes] == kinds
    assert source.frame(0).schema == source.frame(1).schema
    (a,), (b,) = rows(source, 0), rows(source, 1)
    assert a == (2**31 - 1, 1.5, 7.0, Decimal("1.2500"), datetime(2026, 3, 29), (1, None), "a", None)
    assert b == (2**40, 0.1, 2.5, Decimal("123456.7891"), datetime(2026, 3, 29, 1, 30), (2**40, "z"), None, "b")
    together = source.together([0, 1])
    assert together is not None
    assert sorted(together[0].select("whole").collect()) == [(2**31 - 1,), (2**40,)]
