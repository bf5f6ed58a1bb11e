from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.source_position import SourceFile
from stagehold.plan.sources.splits import deal


def files(*sizes):
    return [SourceFile(f"part-{number:02}", size, "1") for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "count", "dealt"),
    [
        ([9, 9, 9, 9], 4, [[9], [9], [9], [9]]),
        ([9, 9, 9, 9, 9], 2, [[9, 9], [9, 9, 9]]),
        ([9, 9], 4, [[], [9], [], [9]]),
        ([1, 2, 3], 1, [[1, 2, 3]]),
        ([100, 1, 1, 1], 2, [[100], [1, 1, 1]]),
        ([1, 1, 1, 100], 2, [[1, 1, 1], [100]]),
        ([40, 10, 10, 40], 2, [[40, 10], [10, 40]]),
        ([0, 0, 0, 0], 2, [[0, 0], [0, 0]]),
        ([], 3, [[], [], []]),
    ],
)
def test_neighbours_are_dealt_by_size(sizes, count, dealt):
    assert [[file.bytes for file in group] for group in deal(files(*sizes), count)] == dealt


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 12))
def test_each_file_is_dealt_once_in_order_and_no_group_is_larger_than_an_equal_share_and_a_file(sizes, count):
    given = files(*sizes)
    groups = deal(given, count)
    assert [file for group in groups for file in group] == given
    assert len(groups) == count
    weights = [max(size, 1) for size in sizes] or [0]
    assert all(sum(max(file.bytes, 1) for file in group) <= sum(weights) / count + max(weights) for group in groups)
