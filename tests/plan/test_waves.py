from __future__ import annotations

from datetime import timedelta

import pytest

from stagehold.plan.waves import WaveSizer

SIZER = WaveSizer(timedelta(seconds=10), slots=4)


@pytest.mark.parametrize(("remaining", "expected"), [(100, 4), (4, 4), (3, 3), (0, 0)])
def test_the_first_wave_fills_the_slots(remaining, expected):
    assert SIZER.first(remaining) == expected


@pytest.mark.parametrize(
    ("size", "seconds", "remaining", "expected"),
    [
        (4, 10.0, 100, 4),  # just right
        (4, 5.0, 100, 8),  # half as long as wanted: twice as many
        (4, 0.0, 100, 8),  # at most doubles
        (16, 20.0, 100, 8),  # too long: shrinks at once
        (16, 1000.0, 100, 4),  # never below the slots
        (16, 10.0, 5, 5),  # never more than there are
    ],
)
def test_the_next_wave_aims_at_the_interval(size, seconds, remaining, expected):
    assert SIZER.following(size, seconds, remaining) == expected
