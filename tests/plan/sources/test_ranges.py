from __future__ import annotations

import sqlite3
from datetime import date, datetime

import pytest

from stagehold.plan.sources.ranges import range_conditions


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
