"""Partitions as ranges, there and back."""

from __future__ import annotations

import pytest

from stagehold.model.ranges import as_ranges, numbers_in


@pytest.mark.parametrize(
    ("numbers", "ranges"),
    [
        ([], ()),
        ([3], ((3, 3),)),
        ([0, 1, 2], ((0, 2),)),
        ([7, 0, 1, 3], ((0, 1), (3, 3), (7, 7))),
    ],
)
def test_neighbours_are_joined_and_named_again(numbers, ranges):
    assert as_ranges(numbers) == ranges
    assert numbers_in(ranges, range(10)) == {*numbers}


@pytest.mark.parametrize(
    ("ranges", "known", "numbers"),
    [
        ([(0, 10**6)], [0, 1, 2], {0, 1, 2, 10**6}),
        ([(5, 10**6)], [], {5, 10**6}),
        ([(2, 1)], [0, 1, 2], {1, 2}),
    ],
)
def test_what_nobody_knows_is_named_by_its_ends_alone(ranges, known, numbers):
    assert numbers_in(ranges, known) == numbers
