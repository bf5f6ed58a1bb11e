"""What an interval reads of a source by `where`, and what it does where nothing is there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
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
    sources = Sources("p", str(day), "r", str(lake), NO_LEDGER, times=times)
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
