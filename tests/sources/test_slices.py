"""What an interval reads of a source by `where`, and what it does where nothing is there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.made_sources import NO_LEDGER, source_stage

from stagehold.errors import SourceMissing, SourceUnusable
from stagehold.model.keys.interval_text import IntervalTimes
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.source_reading import SourceReading

DAYS = [date(2026, 11, number) for number in range(20, 25)]
OF_DAY = "day >= :interval_start AND day < :interval_end"


def read(lake: Path, day: date = DAYS[1], **fields: object) -> SourceReading:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    times = IntervalTimes(str(day), start, start + timedelta(days=1))
    sources = Sources("p", str(day), "r", str(lake), NO_LEDGER, times_of=lambda _: times)
    return sources.of(source_stage(**{"path": "${lake}/events", "where": OF_DAY, **fields}))


def count(reading: SourceReading) -> int:
    return sum(len(split.files) for split in reading.splits)


def prints(reading: SourceReading) -> list[str]:
    return [split.fingerprint for split in reading.splits]


def add_rows(lake: Path, kind: str, day: date, number: int, *, folders: bool = True) -> None:
    rows = {"day": [day], "n": [number], "at": [datetime(day.year, day.month, day.day, 12, tzinfo=UTC)]}
    if kind == "delta":
        by = ["day"] if folders else None
        write_deltalake(str(lake / "events"), pa.table(rows), partition_by=by, mode="append")
        return
    place = lake / "events" / f"day={day}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({name: values for name, values in rows.items() if name != "day"}), place / f"{number}.parquet"
    )


@pytest.fixture(params=["delta", "parquet"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def lake(tmp_path, kind) -> Path:
    for number, day in enumerate([*DAYS[:4], *DAYS[:4]]):
        add_rows(tmp_path, kind, day, number)
    return tmp_path


def test_files_of_other_days_are_not_read_and_a_new_one_elsewhere_changes_nothing(lake, kind):
    before = read(lake, kind=kind)
    assert count(before) == 2
    assert before.condition == "`day` >= DATE '2026-11-21' AND `day` < DATE '2026-11-22'"
    add_rows(lake, kind, DAYS[4], 9)
    assert prints(read(lake, kind=kind)) == prints(before)
    add_rows(lake, kind, DAYS[1], 10)
    assert prints(read(lake, kind=kind)) != prints(before)


@pytest.mark.parametrize(
    "where", ["day = '${interval.start:%Y-%m-%d}'", "day = '${interval}'", "DAY = :interval_start"]
)
def test_the_day_may_be_written_in_several_ways(lake, kind, where):
    assert prints(read(lake, kind=kind, where=where)) == prints(read(lake, kind=kind, where="day = '2026-11-21'"))


def test_another_condition_is_another_key_though_it_has_the_same_files(lake, kind):
    assert prints(read(lake, kind=kind)) != prints(read(lake, kind=kind, where=f"{OF_DAY} AND n > 3"))


def test_statistics_of_a_table_leave_files_out_too(tmp_path):
    for number, day in enumerate(DAYS):
        add_rows(tmp_path, "delta", day, number, folders=False)
    assert count(read(tmp_path, kind="delta")) == 1
    assert count(read(tmp_path, kind="delta", where="at > :interval_start")) == 4
    assert count(read(tmp_path, kind="delta", where="n BETWEEN 1 AND 2")) == 2


def test_a_day_without_a_file_is_an_error_that_says_what_was_looked_for(lake, kind):
    with pytest.raises(
        SourceMissing, match=r"events, of which no file can have rows where day >= TIMESTAMP '2026-11-24"
    ):
        read(lake, DAYS[4], kind=kind)


def test_a_day_without_a_file_is_empty_if_that_is_allowed(lake, kind):
    assert count(read(lake, DAYS[4], kind=kind, if_missing="empty")) == 0


def test_where_the_path_is_that_of_the_interval_the_columns_are_those_of_another_one(tmp_path):
    add_rows(tmp_path, "parquet", DAYS[0], 0)
    path = "${lake}/events/day=${interval.start:%Y-%m-%d}"
    with pytest.raises(SourceMissing):
        read(tmp_path, path=path, where=None)
    reading = read(tmp_path, path=path, where=None, if_missing="empty")
    assert count(reading) == 0
    assert reading.sample is not None
    assert [column.name for column in reading.columns] == ["day"]


def test_what_does_not_fit_the_columns_is_refused_with_them(lake, kind):
    with pytest.raises(SourceUnusable, match="where: there is no column days; there are"):
        read(lake, kind=kind, where="days = :interval_start")


LONG = "a" * 40  # statistics of texts are cut
VALUES = {
    "day": st.dates(date(2026, 11, 20), date(2026, 11, 23)),
    "moment": st.datetimes(datetime(2026, 11, 20), datetime(2026, 11, 20, 0, 0, 1), timezones=st.just(UTC)),
    "text": st.sampled_from(["", "b", LONG, LONG + "a", LONG + "é", LONG + "\U0001f600"]),
    "price": st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("12345678901.25")]),
    "n": st.sampled_from([-(2**62), -1, 0, 2**53 + 1]),
}
TYPES = {
    **{"day": pa.date32(), "moment": pa.timestamp("us", "UTC"), "text": pa.string()},
    **{"price": pa.decimal128(18, 2), "n": pa.int64()},
}
WRITTEN = {"day": "'{}'", "moment": "TIMESTAMP '{}'", "text": "'{}'", "price": "{}", "n": "{}"}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=3
)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    parts = []
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2)):
        operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        parts.append(f"{name} {operator} {WRITTEN[name].format(draw(VALUES[name]))}")
    return " AND ".join(parts)


@settings(max_examples=15, deadline=None)
@given(files=st.lists(ROWS, min_size=1, max_size=3), where=conditions(), by=st.sampled_from([None, ["day"], ["text"]]))
def test_of_a_real_table_every_file_is_read_that_has_a_row_for_which_duckdb_finds_it_true(
    tmp_path_factory, files, where, by
):
    lake = tmp_path_factory.mktemp("lake")
    schema = pa.schema([pa.field(name, kind) for name, kind in TYPES.items()])
    for rows in files:
        write_deltalake(str(lake / "events"), pa.Table.from_pylist(rows, schema), mode="append", partition_by=by)
    chosen = {
        file.path for split in read(lake, kind="delta", where=where, if_missing="empty").splits for file in split.files
    }
    everything = read(lake, kind="delta", where=None)
    for file in (file for split in everything.splits for file in split.files):
        table = pq.ParquetFile(file.path).read()
        for name, value in file.partition:
            table = table.append_column(name, pa.array([value] * len(table), pa.string()).cast(TYPES[name]))
        with duckdb.connect() as base:
            base.execute("SET TimeZone = 'UTC'").register("rows", table)
            ((count_of,),) = base.execute(f"SELECT count(*) FROM rows WHERE {where}").fetchall()
        assert file.path in chosen or count_of == 0
