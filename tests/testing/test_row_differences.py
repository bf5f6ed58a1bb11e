from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.testing.row_differences import frozen, row_differences

VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["a", ""]), st.lists(st.integers(0, 1)))
ROWS = st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES}), max_size=6)


@given(expected=ROWS, found=ROWS)
def test_what_is_found_without_the_unexpected_and_with_the_missing_is_what_was_expected(expected, found):
    differences = row_differences(expected, found)
    mended = Counter(map(frozen, found))
    mended.subtract(map(frozen, differences.unexpected))
    mended.update(map(frozen, differences.missing))
    assert +mended == Counter(map(frozen, expected))
    assert differences.alike + len(differences.missing) == len(expected)
    assert differences.alike + len(differences.unexpected) == len(found)


@given(rows=ROWS, order=st.randoms())
def test_order_does_not_matter(rows, order):
    assert not row_differences(rows, order.sample(rows, len(rows)))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (0.1 + 0.2, 0.3, True),
        (1, 1.0, False),
        (True, 1, False),
        (None, "None", False),
        (Decimal("1.50"), Decimal("1.5"), True),
        ({"a": [1, None]}, {"a": (1, None)}, True),
        (date(2026, 1, 1), "2026-01-01", False),
    ],
)
def test_values_are_alike_as_data_has_them(one, other, alike):
    assert (not row_differences([{"x": one}], [{"x": other}])) is alike


def test_rows_stand_beside_those_they_differ_least_from_and_name_the_values():
    expected = [{"who": "ann", "n": 2}, {"who": "bob", "n": 1}, {"who": "eve", "n": 9}]
    found = [{"who": "bob", "n": 7}, {"who": "ann", "n": 2}, {"who": "zoe", "n": 0}, {"who": "dan", "n": 4}]
    assert row_differences(expected, found).text() == (
        "2 rows missing, 3 unexpected, 1 alike\n"
        "  - who=bob  >n=1\n"
        "  + who=bob  >n=7\n"
        "  - who=eve  n=9\n"
        "  + who=zoe  n=0\n"
        "  + who=dan  n=4"
    )


def test_of_many_rows_some_are_shown_and_the_others_counted():
    text = row_differences([{"n": number} for number in range(25)], []).text()
    assert text.splitlines()[0] == "25 rows missing, 0 unexpected, 0 alike"
    assert (text.count("\n  - "), text.splitlines()[-1]) == (10, "  and 15 more")
