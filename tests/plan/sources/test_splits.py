from __future__ import annotations

import sqlite3
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.source_position import SourceFile
from stagehold.plan.sources.splits import deal, range_conditions


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


@pytest.mark.parametrize(
    ("lower", "upper", "count", "conditions"),
    [
        (0, 100, 1, ["1 = 1"]),
        (0, 100, 2, ["id < 50 or id is null", "id >= 50"]),
        (0, 10, 3, ["id < 3 or id is null", "id >= 3 and id < 6", "id >= 6"]),
        (-4, 4, 2, ["id < 0 or id is null", "id >= 0"]),
        (0, 1, 3, ["id < 0 or id is null", "id >= 0 and id < 0", "id >= 0"]),
        (date(2024, 1, 1), date(2024, 1, 31), 2, ["id < '2024-01-16' or id is null", "id >= '2024-01-16'"]),
        (
            datetime(2024, 1, 1),
            datetime(2024, 1, 2),
            2,
            ["id < '2024-01-01 12:00:00' or id is null", "id >= '2024-01-01 12:00:00'"],
        ),
    ],
)
def test_ranges_are_cut_between_the_bounds(lower, upper, count, conditions):
    assert list(range_conditions("id", lower, upper, count)) == conditions


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_every_row_is_in_exactly_one_range(count):
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (id integer)")
        database.executemany("insert into t values (?)", [(None,), *((number,) for number in range(-5, 26))])
        found = [
            row
            for condition in range_conditions("id", 0, 20, count)
            for row in database.execute(f"select id from t where {condition}")
        ]
        assert len(found) == len(set(found)) == 32
