from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.errors import ImpossibleKeyGroups
from stagehold.model.keys.key_groups import range_of
from stagehold.model.stage_state import StateKind
from stagehold.plan.state.earlier_state import old_lists_read, old_partitions_read, slice_of

SPLIT, UNION, BROADCAST = StateKind.SPLIT, StateKind.UNION, StateKind.BROADCAST

TABLE = [
    ("split leaves an equal number of partitions untouched", SPLIT, ["aaa", "", "b"], 3, ["aaa", "", "b"]),
    ("split deals contiguous slices, the first ones longer", SPLIT, ["abc", "de"], 3, ["ab", "cd", "e"]),
    ("split to one partition gathers in order", SPLIT, ["ab", "c", "d"], 1, ["abcd"]),
    ("split to more partitions than elements leaves the last ones empty", SPLIT, ["ab"], 4, ["a", "b", "", ""]),
    ("union gives everything to everyone", UNION, ["ab", "c"], 3, ["abc", "abc", "abc"]),
    ("union does so at an equal number too", UNION, ["a", "b"], 2, ["ab", "ab"]),
    ("broadcast takes the copy of the index modulo the old number", BROADCAST, ["x", "y"], 3, ["x", "y", "x"]),
    ("broadcast to fewer takes the first copies", BROADCAST, ["x", "y", "z"], 2, ["x", "y"]),
    ("broadcast at an equal number keeps the copies", BROADCAST, ["x", "y"], 2, ["x", "y"]),
]


def redistributed(kind, old, partitions):
    """For each of ``partitions``, the elements that it starts with; ``old`` is what every old partition held."""
    given = []
    for index in range(partitions):
        read = old_lists_read(kind, index, partitions=partitions, old_partitions=len(old))
        elements = [element for one in read for element in old[one]]
        anew = kind is SPLIT and partitions != len(old)
        given.append([elements[place] for place in slice_of(len(elements), index, partitions)] if anew else elements)
    return given


@pytest.mark.parametrize(
    ("kind", "old", "partitions", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_list_state_is_dealt_out_anew(kind, old, partitions, expected):
    assert redistributed(kind, old, partitions) == [list(elements) for elements in expected]


@settings(deadline=None)
@given(old=st.lists(st.lists(st.integers()), min_size=1, max_size=8), partitions=st.integers(1, 20))
def test_split_loses_nothing_and_doubles_nothing(old, partitions):
    dealt = redistributed(SPLIT, old, partitions)
    assert [element for part in dealt for element in part] == [element for part in old for element in part]
    if partitions != len(old):
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_more_partitions_than_groups_are_refused():
    with pytest.raises(ImpossibleKeyGroups, match="partitions 2; allowed: 1 to 1"):
        old_partitions_read(1, partitions=2, old_partitions=1, max_parallelism=1)


sizes = st.integers(1, 400).flatmap(
    lambda groups: st.tuples(st.just(groups), st.integers(1, groups), st.integers(1, groups))
)


@settings(max_examples=50, deadline=None)
@given(sizes)
def test_every_group_finds_its_state_in_exactly_one_old_part(size):
    max_parallelism, old, new = size
    for index in range(new):
        read = old_partitions_read(index, partitions=new, old_partitions=old, max_parallelism=max_parallelism)
        held = [group for one in read for group in range_of(one, old, max_parallelism)]
        own = range_of(index, new, max_parallelism)
        assert [group for group in held if group in own] == list(own)
        assert all(set(range_of(one, old, max_parallelism)) & set(own) for one in read), "no other is opened"
