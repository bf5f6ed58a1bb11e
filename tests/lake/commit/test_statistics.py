"""What goes into the log about a file: never anything by which a reader could skip rows that match."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagehold.lake.commit.staged_committer import delta_statistics
from stagehold.lake.store.footers import FIRST_GUESS, ColumnRange, Footer, read_footer
from stagehold.model.kept import OF_PROCESS, bytes_of


def statistics(**columns: ColumnRange) -> dict[str, Any]:
    return json.loads(delta_statistics(Footer(3, columns)))


@pytest.mark.parametrize(
    ("minimum", "maximum", "written"),
    [
        (-1, 2**60, (-1, 2**60)),
        ("a", "b", ("a", "b")),
        (date(1, 1, 1), date(9999, 12, 31), ("0001-01-01", "9999-12-31")),
        (Decimal("-1.10"), Decimal("12345.678"), (-1.1, 12345.678)),
        (
            datetime(2026, 1, 1, 0, 0, 0, 1234, UTC),
            datetime(2026, 1, 1, 0, 0, 0, 1234, UTC),
            ("2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00.002Z"),
        ),
        (
            datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"),
        ),
        (
            datetime.fromisoformat("2026-01-01T00:00:00.999999"),
            datetime.fromisoformat("2026-01-01T00:00:00.999999"),
            ("2026-01-01T00:00:00.999", "2026-01-01T00:00:01.000"),
        ),
    ],
)
def test_ranges_are_written_so_that_they_hold_every_value(minimum, maximum, written):
    found = statistics(c=ColumnRange(0, minimum, maximum))
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == written


@pytest.mark.parametrize(
    "value",
    [
        *(1.5, float("nan"), True, b"x", "x" * 33, Decimal("1234567890.123456"), None),
        *(datetime.max, datetime.max.replace(tzinfo=UTC), datetime.max.replace(microsecond=999_001)),
    ],
)
def test_ranges_that_might_mislead_are_left_out(value):
    found = statistics(c=ColumnRange(1, value, value))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 1})


def test_nulls_that_were_not_counted_are_not_claimed():
    assert statistics(c=ColumnRange(None, 1, 2))["nullCount"] == {}


def test_a_footer_tells_rows_nulls_and_ranges_over_all_row_groups(tmp_path: Path):
    table = pa.table(
        {"n": [3, None, 1, 2], "s": ["c", "a", None, None], "nothing": pa.array([None] * 4, pa.int64()), "l": [[1]] * 4}
    )
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    footer = read_footer(str(tmp_path), "f.parquet")
    assert footer.rows == 4
    assert footer.columns == {
        "n": ColumnRange(1, 1, 3),
        "s": ColumnRange(2, "a", "c"),
        "nothing": ColumnRange(4, None, None),
    }


def test_a_footer_is_read_once_and_counts_as_what_the_process_keeps(tmp_path: Path):
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "f.parquet")
    read = read_footer(str(tmp_path), "f.parquet")
    (tmp_path / "f.parquet").unlink()
    assert read_footer(str(tmp_path), "f.parquet") is read
    assert next(kind for kind in OF_PROCESS.kinds if kind.kind == "footers of files").bytes >= bytes_of(read)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((-719_163, 0), pa.date32()),  # a day before the year 1
        ((0, 2_932_897), pa.date32()),  # a day after the year 9999
        ((-62_135_596_800_000_001, 0), pa.timestamp("us")),
        ((0, 253_402_300_800_000_000), pa.timestamp("us", "UTC")),
        ((2**63 - 1, -(2**63) + 1), pa.timestamp("us")),
    ],
)
def test_values_that_python_cannot_say_have_no_range_and_are_counted(tmp_path: Path, values, kind):
    column = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    pq.write_table(pa.table({"c": pa.chunked_array([column, pa.array([None], kind)]), "n": [1, 2, 3]}), tmp_path / "f")
    footer = read_footer(str(tmp_path), "f")
    assert footer.columns == {"c": ColumnRange(1, None, None), "n": ColumnRange(0, 1, 3)}
    found = json.loads(delta_statistics(footer))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"n": 1}, {"n": 3}, {"c": 1, "n": 0})


def test_the_last_moment_that_can_be_said_has_a_range():
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000)
    assert statistics(c=ColumnRange(0, last, last))["maxValues"] == {"c": "9999-12-31T23:59:59.999"}


def test_a_file_without_statistics_has_none(tmp_path: Path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "f.parquet", write_statistics=False)
    assert read_footer(str(tmp_path), "f.parquet").columns == {"n": ColumnRange(None, None, None)}


def test_a_struct_hides_its_fields_and_a_dot_in_a_name_does_not(tmp_path: Path):
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 5}]}), tmp_path / "f.parquet")
    assert read_footer(str(tmp_path), "f.parquet").columns == {"a.b": ColumnRange(0, 1, 1)}


def test_a_footer_longer_than_the_first_guess_is_read_whole(tmp_path: Path):
    pq.write_table(pa.table({f"column_{number}": [number] for number in range(2000)}), tmp_path / "f.parquet")
    assert pq.read_metadata(tmp_path / "f.parquet").serialized_size > FIRST_GUESS
    assert read_footer(str(tmp_path), "f.parquet").columns["column_1999"] == ColumnRange(0, 1999, 1999)
