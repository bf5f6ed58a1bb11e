from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from stagehold.model.duration import read_duration, write_duration


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


@pytest.mark.parametrize("text", ["30", "s", "1.5s", "-1s", "1 m", "1S", "", 30, None, True, "PT1S"])
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError, match="a whole number with a unit"):
        read_duration(text)


def test_more_than_a_machine_can_hold_is_refused() -> None:
    with pytest.raises(PydanticCustomError, match="at most 999999999d"):
        read_duration("1000000000d")


@given(st.integers(0, 10**12))
def test_a_duration_reads_back_as_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert read_duration(write_duration(duration)) == duration


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (60, "1min"), (90, "90s"), (7200, "2h"), (86400, "1d")])
def test_a_duration_is_written_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert write_duration(timedelta(seconds=seconds)) == text
