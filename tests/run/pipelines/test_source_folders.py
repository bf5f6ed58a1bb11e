"""Hive-partitioned sources, split by split, against what Spark and DuckDB read of the whole folder."""

from __future__ import annotations

from pathlib import Path

import boto3
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceUnusable
from stagehold.ledger import Ledger
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.sources.source_reading import SourceFrames

pytestmark = pytest.mark.spark
ROWS = {  # folders, and the values that Spark infers from all of them together
    "day=2026-01-01/kind=1": ("2026-01-01", "1"),
    "day=2026-01-01/kind=a%2Fb c": ("2026-01-01", "a/b c"),
    "day=2026-01-02/kind=007": ("2026-01-02", "007"),
    "day=__HIVE_DEFAULT_PARTITION__/kind=__HIVE_DEFAULT_PARTITION__": (None, None),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as opened:
        yield opened


@pytest.fixture
def frames(spark, tmp_path, ledger):
    def open_source(interval: str = "monday", lake: str = "", **fields) -> SourceFrames:
        stage = source_stage(**{"splits": 3, **fields})
        sources = Sources("p", interval, interval, lake or str(tmp_path), ledger)
        sources.settle(stage, Listing.OF_RUN)
        return SourceFrames(spark, "orders", sources.of(stage))

    return open_source


def put(root: Path, folder: str, number: int, kind: str = "parquet", **columns: object) -> Path:
    path = root / folder / f"part-{number}.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(
            pa.table({"n": pa.array([number], pa.int32()), **{name: [value] for name, value in columns.items()}}), path
        )
    else:
        path.write_text(f"{number}\n" if kind == "csv" else f'{{"n": {number}}}\n')
    return path


def rows(frame) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in frame.collect())


def split_rows(source: SourceFrames) -> list[tuple[str, ...]]:
    return sorted(row for partition in range(len(source.reading.splits)) for row in rows(source.frame(partition)))


@pytest.mark.parametrize(
    ("kind", "declared"),
    [("parquet", {}), ("csv", {"ddl": "n int"}), ("json", {"ddl": "n int"}), ("csv", {"ddl": "infer"})],
)
def test_every_split_has_the_columns_that_spark_gives_the_whole_folder(frames, spark, tmp_path, kind, declared):
    for number, folder in enumerate(ROWS):
        put(tmp_path / "raw", folder, number, kind)
    source = frames(kind=kind, splits=6, **declared)
    reader = spark.read.format(kind) if kind == "parquet" else spark.read.format(kind).schema("n int")
    whole = reader.load(f"{tmp_path}/raw").withColumnRenamed("_c0", "n")
    assert {source.frame(partition).schema.simpleString().replace("_c0", "n") for partition in range(6)} == {
        whole.schema.simpleString()
    }
    assert whole.schema.simpleString() == "struct<n:int,day:date,kind:string>"
    assert (
        split_rows(source)
        == rows(whole)
        == sorted((str(n), *map(str, values)) for n, values in enumerate(ROWS.values()))
    )


TYPED = [
    *("1", "x", "2147483648", "1.5", "99999999999999999999", "2026-01-01", "2026-01-01 10%3A00%3A00", "a%2Fb"),
    "__HIVE_DEFAULT_PARTITION__",
]


@pytest.mark.parametrize("others", ["1", "2026-01-02", "x"])
def test_types_fit_all_files_as_spark_infers_them(frames, spark, tmp_path, others):
    for number, value in enumerate(TYPED):
        for place, one in enumerate({value, others}):
            put(tmp_path / str(number), f"v={one}", place)
        source = frames(interval=str(number), path=f"${{lake}}/{number}", splits=2)
        whole = spark.read.parquet(f"{tmp_path}/{number}")
        assert [source.frame(partition).schema for partition in (0, 1)] == [whole.schema] * 2
        assert split_rows(source) == rows(whole)


def test_the_answer_is_duckdbs(frames, tmp_path):
    for number in range(6):
        put(tmp_path / "raw", f"year=202{number % 2}/day=2026-01-0{1 + number}", number)
    found = duckdb.sql(
        f"select n, day, year from read_parquet('{tmp_path}/raw/**/*.parquet', hive_partitioning=true)"
    ).fetchall()
    assert split_rows(frames()) == sorted((str(n), str(year), str(day)) for n, day, year in found)


def test_a_filter_on_a_folder_column_skips_files(frames, tmp_path):
    for day in (1, 2, 3):
        put(tmp_path / "raw", f"day=2026-01-0{day}", day)
    source = frames(splits=1)
    frame = source.frame(0)
    (tmp_path / "raw" / "day=2026-01-02" / "part-2.parquet").write_bytes(b"nobody reads this")
    assert rows(frame.where(F.col("day") != "2026-01-02").select("n")) == [("1",), ("3",)]
    assert rows(frame.where("n < 9").where(F.col("day") == "2026-01-03").select("n")) == [("3",)]


def test_one_scan_over_many_splits_has_them_too(frames, tmp_path):
    for day in (1, 2, 3):
        put(tmp_path / "raw", f"day={day}", day)
    frame, partition = frames().together((0, 2))
    assert rows(frame.withColumn("partition", partition)) == [("1", "1", "0"), ("3", "3", "2")]


def test_folders_below_several_roots_and_strange_names_are_read(frames, tmp_path):
    for number, folder in enumerate(["eu[1]*/day=1", "us/day=2/part", "us/day=2/part"]):
        put(tmp_path / "raw", folder, number)
    source = frames(splits=1)
    assert split_rows(source) == [("0", "1"), ("1", "2"), ("2", "2")]
    assert source.together((0,)) is None


def test_a_glob_a_file_and_a_listed_split_have_the_columns_as_well(frames, tmp_path):
    put(tmp_path / "raw", "day=1", 1)
    put(tmp_path / "raw", "day=x", 2)
    assert split_rows(frames(path="${lake}/raw/day=1/*.parquet", splits=1)) == [("1", "1")]
    listed = frames(path=None, splits=[["${lake}/raw/day=1/part-1.parquet"], "${lake}/raw/day=x"])
    assert [listed.frame(partition).schema.simpleString() for partition in (0, 1)] == ["struct<n:int,day:string>"] * 2
    assert split_rows(listed) == [("1", "1"), ("2", "x")]


def test_where_files_and_folders_have_a_column_the_folder_counts_as_in_spark_and_duckdb(frames, spark, tmp_path):
    put(tmp_path / "raw", "day=3", 1, day=7)
    assert split_rows(frames(splits=1)) == [("1", "3")]
    assert rows(spark.read.parquet(f"{tmp_path}/raw").select("n", "day")) == [("1", "3")]
    found = duckdb.sql(
        f"select n, day from read_parquet('{tmp_path}/raw/**/*.parquet', hive_partitioning=true)"
    ).fetchall()
    assert found == [(1, 3)]


def test_csv_columns_count_by_place_so_one_that_is_in_both_is_refused(frames, tmp_path):
    (tmp_path / "raw" / "day=3").mkdir(parents=True)
    (tmp_path / "raw" / "day=3" / "a.csv").write_text("day,n\n7,1\n")
    with pytest.raises(SourceUnusable, match="its files have columns that their folders give as well: day"):
        frames(kind="csv", ddl="infer", header=True, splits=1).frame(0)


def test_a_declared_type_counts(frames, tmp_path):
    put(tmp_path / "raw", "day=3", 1, "json")
    assert (
        frames(kind="json", ddl="day string, n int", splits=1).frame(0).schema.simpleString()
        == "struct<n:int,day:string>"
    )


def test_folders_of_several_depths_are_refused(frames, tmp_path):
    put(tmp_path / "raw", "day=3", 1)
    put(tmp_path / "raw", "", 2)
    with pytest.raises(SourceUnusable, match=r"give day.*give no columns|give no columns.*give day"):
        frames()


def test_an_interval_keeps_the_types_of_the_files_that_there_were(frames, tmp_path):
    put(tmp_path / "raw", "day=1", 1)
    assert split_rows(frames("monday", incremental=True)) == [("1", "1")]
    put(tmp_path / "raw", "day=x", 2)
    tuesday, monday = frames("tuesday", incremental=True), frames("monday", incremental=True)
    assert (monday.frame(0).schema["day"].dataType.simpleString(), split_rows(monday)) == ("int", [("1", "1")])
    assert (tuesday.frame(0).schema["day"].dataType.simpleString(), split_rows(tuesday)) == ("string", [("2", "x")])
    put(tmp_path / "raw", "day=3", 3)
    (tmp_path / "raw" / "day=x" / "part-2.parquet").unlink()  # read, and cleared away
    assert frames("wednesday", incremental=True).frame(0).schema["day"].dataType.simpleString() == "string"
    # nothing new
    assert frames("thursday", incremental=True).frame(0).schema.simpleString() == "struct<n:int,day:string>"


def test_another_type_changes_every_split(frames, tmp_path):
    put(tmp_path / "raw", "day=1", 1)
    put(tmp_path / "raw", "day=2", 2)
    before = [
        split.fingerprint
        for split in frames(splits=[["${lake}/raw/day=1"], ["${lake}/raw/day=2"]], path=None).reading.splits
    ]
    put(tmp_path / "raw", "day=x", 3)
    lists = [["${lake}/raw/day=1"], ["${lake}/raw/day=2"], ["${lake}/raw/day=x"]]
    after = [split.fingerprint for split in frames(splits=lists, path=None).reading.splits]
    assert not set(before) & set(after)


def test_folders_in_a_bucket(frames, tmp_path, lake_in_s3):
    bucket, _, prefix = lake_in_s3.removeprefix("s3://").partition("/")
    for number, folder in enumerate(ROWS):
        path = put(tmp_path / "local", folder, number)
        boto3.client("s3").upload_file(str(path), bucket, f"{prefix}/raw/{folder}/{path.name}")
    source = frames(lake=lake_in_s3)
    assert split_rows(source) == sorted((str(n), *map(str, values)) for n, values in enumerate(ROWS.values()))
    assert rows(source.frame(0).where("kind = 'no such kind'")) == []
