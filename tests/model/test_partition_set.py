"""Sets of partitions: the algebra of ordinary sets, in ascending order, and each form in which they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet, Share, exact_text, overlap
from stagehold.model.records import WHOLE

NUMBERS = st.frozensets(st.integers(0, 60))


@given(NUMBERS, NUMBERS)
def test_it_has_the_algebra_of_ordinary_sets(one, other):
    mine, theirs = PartitionSet(one), PartitionSet(other)
    assert (mine | theirs, mine & theirs, mine - theirs) == (one | other, one & other, one - other)
    assert (mine <= theirs, mine == theirs, mine.isdisjoint(theirs)) == (one <= other, one == other, not one & other)
    assert (hash(mine), len(mine), bool(mine), [*mine]) == (hash(one), len(one), bool(one), sorted(one))
    assert isinstance(mine | theirs, PartitionSet)


@given(NUMBERS)
def test_what_is_written_is_read_back(numbers):
    ranges = PartitionSet(numbers).ranges
    assert PartitionSet.named(ranges, range(61)) == numbers
    if numbers:
        assert PartitionSet.parse(exact_text(ranges)) == numbers


@pytest.mark.parametrize(("text", "numbers"), [("3, 5-7", {3, 5, 6, 7}), ("4", {4}), ("7-5", set())])
def test_what_somebody_wrote_is_read(text, numbers):
    assert PartitionSet.parse(text) == numbers


@pytest.mark.parametrize("text", ["", "x", "1,", "1-x", "-1"])
def test_what_names_no_partitions_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        PartitionSet.parse(text)


def test_a_number_that_stands_for_all_of_a_stage_has_words_of_its_own():
    assert str(PartitionSet([WHOLE, 0, 1])) == "all together, 0-1"
    assert str(PartitionSet([WHOLE])) == "all together"
    assert repr(PartitionSet([0, 1, 4])) == "PartitionSet({0-1,4})"
    assert str(NO_PARTITIONS) == ""


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1, 2), "0-2"),
        ((0, 2), "0, 2"),
        ((0, 1, 4, 6, 7, 8), "0-1, 4, 6-8"),
        (range(0, 2000, 2), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, ..., 1998"),
    ],
)
def test_neighbouring_partitions_are_joined(partitions, expected):
    assert str(PartitionSet(partitions)) == expected


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
    assert PartitionSet(numbers).ranges == ranges
    assert PartitionSet.named(ranges, range(10)) == {*numbers}


@pytest.mark.parametrize(
    ("ranges", "known", "numbers"),
    [
        ([(0, 10**6)], [0, 1, 2], {0, 1, 2, 10**6}),
        ([(5, 10**6)], [], {5, 10**6}),
        ([(2, 1)], [0, 1, 2], {1, 2}),
    ],
)
def test_what_nobody_knows_is_named_by_its_ends_alone(ranges, known, numbers):
    assert PartitionSet.named(ranges, known) == numbers


@pytest.mark.parametrize(
    ("text", "expected"), [("0-15", Share(0, 15)), ("7-7", Share(7, 7)), ("", None), ("a-b", None), ("1-2/3-4", None)]
)
def test_a_share_is_read_back_from_its_name(text, expected):
    assert Share.parse(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Share(0, 3), Share(4, 7), False),
        (Share(0, 3), Share(3, 7), True),
        (Share(0, 7), Share(2, 3), True),
        (None, Share(2, 3), True),
        (None, None, True),
    ],
)
def test_shares_overlap_where_they_have_a_partition_in_common(one, other, expected):
    assert (overlap(one, other), overlap(other, one)) == (expected, expected)
