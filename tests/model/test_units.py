from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from stagehold.model.units import LARGEST, read_duration, read_size, write_duration, write_size


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        (" 10 min ", timedelta(minutes=10)),
        ("1h", timedelta(hours=1)),
        ("1d", timedelta(days=1)),
        ("0s", timedelta(0)),
        (timedelta(seconds=2), timedelta(seconds=2)),
    ],
)
def test_a_duration_is_read(text: object, duration: timedelta) -> None:
    assert read_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["30", "s", "1.5s", "-1s", "1 m", "1S", "", 30, None, True, "PT1S", "1mb", timedelta(seconds=-1)]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError, match="a whole number with a unit: 500ms"):
        read_duration(text)


def test_more_time_than_a_machine_can_hold_is_refused() -> None:
    with pytest.raises(PydanticCustomError, match="at most 999999999d"):
        read_duration("1000000000d")


@given(st.integers(0, 10**12))
def test_a_duration_reads_back_as_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert read_duration(write_duration(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (60, "1min"), (90, "90s"), (7200, "2h"), (86400, "1d")]
)
def test_a_duration_is_written_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert write_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("text", "size", "written"),
    [
        ("1b", 1, "1b"),
        ("1kb", 1 << 10, "1kb"),
        ("1025b", 1025, "1025b"),
        ("512kb", 512 << 10, "512kb"),
        ("128mb", 128 << 20, "128mb"),
        (" 2 GB", 2 << 30, "2gb"),
        ("1024gb", 1 << 40, "1tb"),
        ("0001tb", 1 << 40, "1tb"),
        (4096, 4096, "4kb"),
        (1025, 1025, "1025b"),
    ],
)
def test_a_size_is_read_and_written_in_its_largest_whole_unit(text: object, size: int, written: str) -> None:
    assert (read_size(text), write_size(size)) == (size, written)


@pytest.mark.parametrize(
    "text", ["", "128", "mb", "1.5gb", "0kb", "-1mb", "12mib", "1pb", "30s", 0, 1023, -1, True, None, 1.5]
)
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError, match="a whole number with a unit, more than 0"):
        read_size(text)


def test_more_data_than_a_machine_can_count_is_refused() -> None:
    with pytest.raises(PydanticCustomError, match="at most 8388607tb"):
        read_size("8388608tb")


@given(st.integers(1, LARGEST))
@example(1_957_216 << 10)
@example(LARGEST)
def test_a_size_reads_back_as_written(size: int) -> None:
    assert read_size(write_size(size)) == size
