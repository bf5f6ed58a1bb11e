from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.errors import ImpossibleKeyGroups
from stagehold.model.keys.key_groups import default_max_parallelism, group_column, index_of_group, range_of


@st.composite
def parallelisms(draw: st.DrawFn) -> tuple[int, int]:
    """Partitions and the max parallelism they are under."""
    most = draw(st.integers(1, 32768))
    return draw(st.integers(1, min(most, 300))), most


@given(parallelisms())
def test_ranges_cover_every_group_once_and_differ_by_at_most_one(sizes: tuple[int, int]) -> None:
    partitions, most = sizes
    ranges = [range_of(index, partitions, most) for index in range(partitions)]
    assert ranges[0].start == 0
    assert ranges[-1].stop == most
    assert all(left.stop == right.start for left, right in pairwise(ranges))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@given(parallelisms(), st.data())
def test_a_group_is_in_the_range_of_its_index(sizes: tuple[int, int], data: st.DataObject) -> None:
    partitions, most = sizes
    group = data.draw(st.integers(0, most - 1))
    assert group in range_of(index_of_group(group, partitions, most), partitions, most)


@pytest.mark.parametrize(
    ("partitions", "most"),
    [
        (1, 128),
        (16, 128),
        (85, 128),
        (86, 256),
        (128, 256),
        (170, 256),
        (171, 256),
        (172, 512),
        (21845, 32768),
        (21846, 32768),
        (32768, 32768),
    ],
)
def test_the_default_max_parallelism_is_flinks(partitions: int, most: int) -> None:
    assert default_max_parallelism(partitions) == most


@pytest.mark.parametrize(
    ("ask", "name", "allowed"),
    [
        (lambda: default_max_parallelism(0), "partitions 0", "1 to 32768"),
        (lambda: default_max_parallelism(32769), "partitions 32769", "1 to 32768"),
        (lambda: range_of(0, 0, 128), "partitions 0", "1 to 128"),
        (lambda: range_of(0, 129, 128), "partitions 129", "1 to 128"),
        (lambda: range_of(0, 1, 32769), "max_parallelism 32769", "1 to 32768"),
        (lambda: range_of(0, 1, 0), "max_parallelism 0", "1 to 32768"),
        (lambda: range_of(4, 4, 128), "partition 4", "0 to 3"),
        (lambda: range_of(-1, 4, 128), "partition -1", "0 to 3"),
        (lambda: index_of_group(128, 4, 128), "group 128", "0 to 127"),
        (lambda: index_of_group(-1, 4, 128), "group -1", "0 to 127"),
        (lambda: index_of_group(0, 5, 4), "partitions 5", "1 to 4"),
        (lambda: group_column(("a",), 0), "max_parallelism 0", "1 to 32768"),
    ],
)
def test_what_cannot_be_is_refused(ask: Callable[[], object], name: str, allowed: str) -> None:
    with pytest.raises(ImpossibleKeyGroups, match=f"with {name}; allowed: {allowed}"):
        ask()


def test_group_columns_of_different_readers_have_different_names() -> None:
    names = {group_column(key, most) for key in (("a",), ("a", "b"), ("ab",), ("a b",)) for most in (64, 128)}
    assert len(names) == 8
    assert all(name.isidentifier() for name in names)


def test_a_column_that_was_made_by_another_hash_is_never_found() -> None:
    assert group_column(("a",), 128, "crc32-utf8") != group_column(("a",), 128)
