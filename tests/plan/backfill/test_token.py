"""A token is true as long as exactly the cells run that were shown; else it tells which others do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.backfill import PlannedCell
from stagehold.plan.backfill.token import difference, short, token_of


def cell(interval: str, stage: str = "a", *ranges: tuple[int, int]) -> PlannedCell:
    return PlannedCell(interval, stage, ranges or ((0, 3),))


ONE, TWO = cell("2026-11-01"), cell("2026-11-02", "b", (0, 0), (7, 15))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ([ONE, TWO], None),
        ([ONE, TWO, cell("2026-11-03")], "1 more cell runs than you were shown: 2026-11-03 a[0-3]"),
        ([ONE], "1 cell runs no more: 2026-11-02 b[0, 7-15]"),
        ([cell("2026-11-01", "a", (2, 2)), TWO], "1 cell runs in other partitions: 2026-11-01 a[2]"),
        (
            [ONE, TWO, *(cell(f"2026-12-0{day}") for day in range(1, 8))],
            "7 more cells run than you were shown: 2026-12-01 a[0-3], 2026-12-02 a[0-3], 2026-12-03 a[0-3], "
            "2026-12-04 a[0-3], 2026-12-05 a[0-3], and 2 more",
        ),
        ([], "2 cells run no more: 2026-11-01 a[0-3], 2026-11-02 b[0, 7-15]"),
    ],
)
def test_what_changed_is_told_in_cells(now, expected):
    assert difference(token_of([ONE, TWO]), now) == expected


def test_the_digest_alone_tells_that_something_changed():
    token = short(token_of([ONE]))
    assert difference(token, [ONE]) is None
    assert difference(token, [TWO]) == "what runs is not what you were shown: now it is 2026-11-02 b[0, 7-15]"


@pytest.mark.parametrize("token", ["", "x", "abc.def", "0123456789ab.!!!", f"{short(token_of([ONE]))[:-1]}.eJwDAA"])
def test_what_is_no_token_is_refused_and_breaks_nothing(token):
    assert difference(token, [ONE]) == "what runs is not what you were shown: now it is 2026-11-01 a[0-3]"


names = st.text("abc-é", min_size=1, max_size=4)
spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=3).map(tuple)
cells = st.lists(st.builds(PlannedCell, names, names, spans), unique_by=lambda one: (one.interval, one.stage))


@given(cells, cells)
def test_only_the_same_cells_have_the_same_token(shown, now):
    assert (difference(token_of(shown), now) is None) == (shown == now)
