"""Pipelines that read their date's slice: what they hold against DuckDB, and what other dates' files do to them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.run.small_project import SmallProject, values_of

from stagehold.errors import InvalidInterval, SourceMissing, SourceUnusable, StageFailed

pytestmark = pytest.mark.spark
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def kept(ctx, source):
    return source.where("number % 2 = 0").withColumn("twice", F.col("number") * 2)

@stage
def counted(ctx, kept):
    return kept.groupBy("number").agg(F.count("*").alias("n"))
"""
KEYED = {"inputs": {"kept": {"exchange": "keyed", "key": "number"}}, "partitions": 2}
FIRST = date(2026, 11, 20)


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "slices"
    (folder / "sql").mkdir(parents=True)
    return SmallProject.make(folder, spark_remote, JOBS)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def write(project: SmallProject, kind: str, number: int, offset: int = 0) -> None:
    """A day's events, one of them without a day, some at its first and its last moment."""
    midnight = datetime.combine(day(number), datetime.min.time(), UTC)
    moments = [midnight, midnight + timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999), None]
    numbers = [offset + 10 * number + place for place in range(3)]
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC")), "number": pa.array(numbers, pa.int64())})
    lake = Path(project.settings.lake_uri)
    if kind == "delta":
        write_deltalake(str(lake / "events"), rows, mode="append")
    else:
        place = lake / "events" / f"day={day(number)}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, place / f"part-{offset}.parquet")


def source(kind: str, where: str, **fields: object) -> dict[str, object]:
    return {"kind": kind, "path": "${lake}/events", "splits": 2, "where": where, **fields}


def numbers(records) -> list[int]:
    files = [str(Path(record.table, file.path)) for record in records for file in record.files]
    return (
        sorted(row[0] for row in duckdb.sql(f"SELECT number FROM read_parquet({files!r})").fetchall()) if files else []
    )


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("delta", "at >= :interval_start AND at < :interval_end"),
        ("parquet", "day = :interval_start"),
        ("parquet", "day = '${interval.start:%Y-%m-%d}' AND at >= :interval_start"),
    ],
)
def test_each_day_holds_its_own_rows_and_another_days_file_computes_nothing_again(project, capsys, kind, where):
    for number in range(3):
        write(project, kind, number)
    pipeline = project.pipeline("daily", {"kept": {"source": source(kind, where)}, "counted": KEYED}, schedule="@daily")
    wanted = {0: [0], 1: [10], 2: [20]} if "at" in where else {0: [0, 2], 1: [10, 12], 2: [20, 22]}
    for number in range(3):
        found = project.run(pipeline, f"first {number}", str(day(number)))
        assert numbers(found["kept"]) == numbers(found["counted"]) == wanted[number]
    write(project, kind, 3)
    capsys.readouterr()
    project.run(pipeline, "again", str(day(1)))
    said = capsys.readouterr().out
    assert "kept: reuse 2 of 2 partitions" in said
    assert "counted: reuse 2 of 2 partitions" in said
    write(project, kind, 1, offset=100)
    assert numbers(project.run(pipeline, "late", str(day(1)))["counted"]) == [*wanted[1], *(100 + n for n in wanted[1])]


def test_a_day_without_rows_is_an_error_or_empty_as_is_declared(project):
    write(project, "parquet", 0)
    stages = {"kept": {"source": source("parquet", "day = :interval_start")}, "counted": KEYED}
    with pytest.raises(SourceMissing, match="no file can have rows where day = TIMESTAMP '2026-11-25"):
        project.run(project.pipeline("strict", stages), "strict", "2026-11-25")
    stages["kept"]["source"]["if_missing"] = "empty"
    found = project.run(project.pipeline("lenient", stages), "lenient", "2026-11-25")
    assert (len(found["kept"]), numbers(found["counted"])) == (2, [])
    path = {"kind": "parquet", "path": "${lake}/events/day=${interval}", "splits": 1, "if_missing": "empty"}
    found = project.run(project.pipeline("by_path", {"kept": {"source": path}}), "empty", "2026-11-25")
    assert numbers(found["kept"]) == []
    write(project, "parquet", 5)
    assert numbers(
        project.run(project.pipeline("by_path", {"kept": {"source": path}}), "late", "2026-11-25")["kept"]
    ) == [50, 52]


def test_a_query_has_both_ends_of_its_interval(project):
    Path(project.settings.project, "sql", "ends.sql").write_text(
        "SELECT number, CAST(:interval_end AS BIGINT) - CAST(:interval_start AS BIGINT) AS seconds FROM source"
    )
    stages = {"ends": {"sql": "sql/ends.sql", "source": {"kind": "parquet", "path": "${lake}/raw", "splits": 1}}}
    pipeline = project.pipeline("ends", stages, schedule="0 2 * * MON")
    (record,) = project.run(pipeline, "one", "2026-11-23")["ends"]
    files = [str(Path(record.table, file.path)) for file in record.files]
    assert duckdb.sql(f"SELECT DISTINCT seconds FROM read_parquet({files!r})").fetchall() == [(7 * 24 * 60 * 60,)]
    with pytest.raises((InvalidInterval, StageFailed), match="has no :interval_end, which the query asks for"):
        project.run(project.pipeline("ends", stages), "two", "whole")


def test_a_backfill_whose_files_are_all_there_gives_each_day_its_own_and_a_late_file_to_the_next_one(project):
    def arrive(day: date, name: str, *values: int) -> None:
        file = Path(project.settings.lake_uri, "raw_days", f"day={day}", f"{name}.parquet")
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"number": pa.array(values, pa.int64())}), file)

    days = [FIRST + timedelta(days=number) for number in range(4)]
    for number, day in enumerate(days):
        arrive(day, "a", 10 * number, 10 * number + 2)
    by_day = {"by": "column", "column": "day"}
    source = {"kind": "parquet", "path": "${lake}/raw_days/**/*.parquet", "splits": 1, "incremental": by_day}
    pipeline = project.pipeline("days", {"kept": {"source": source}}, schedule="0 2 * * *")

    def made(day: date) -> list[int]:
        (record,) = project.run(pipeline, f"run of {day}", str(day))["kept"]
        return values_of(record, "number")

    assert {day: made(day) for day in (days[2], days[0])} == {days[2]: [20, 22], days[0]: [0, 2]}
    arrive(days[0], "late", 4)
    assert {day: made(day) for day in (days[1], days[3], days[0])} == {
        days[1]: [4, 10, 12],
        days[3]: [30, 32],
        days[0]: [0, 2],
    }


def test_columns_that_a_source_declares_and_its_age_are_looked_at_before_anything_is_computed(project, capsys):
    write(project, "parquet", 0)
    place = {"kind": "parquet", "path": "${lake}/events", "splits": 1}
    columns = {"number": "bigint", "at": "timestamp", "day": "date"}
    limits = {"freshness": {"warn_after": "1ms", "error_after": "1d"}}

    def run(name: str, **fields: object) -> list[int]:
        pipeline = project.pipeline(name, {"kept": {"source": {**place, **fields}}}, schedule="@daily")
        return numbers(project.run(pipeline, name, str(day(0)))["kept"])

    assert run("declared", columns=columns, **limits) == [0, 2]
    assert "kept: its newest data came 1min ago, and warn_after is 1ms" in capsys.readouterr().out
    with pytest.raises(SourceUnusable, match="number is declared int, and is bigint; more is declared date"):
        run("other", columns={**columns, "number": "int", "more": "date"})
    with pytest.raises(SourceUnusable, match="error_after is 1ms"):
        run("old", freshness={"error_after": "1ms"})
