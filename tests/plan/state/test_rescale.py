from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.errors import ImpossibleKeyGroups
from stagehold.model.key_groups import range_of
from stagehold.model.stage_state import StateKind
from stagehold.plan.state.rescale import KeyedPart, old_partitions_read, redistribute, rescale_keyed

SPLIT, UNION, BROADCAST = StateKind.SPLIT, StateKind.UNION, StateKind.BROADCAST

TABLE = [
    ("split leaves an equal number of partitions untouched", SPLIT, ["aaa", "", "b"], 3, ["aaa", "", "b"]),
    ("split deals contiguous slices, the first ones longer", SPLIT, ["abc", "de"], 3, ["ab", "cd", "e"]),
    ("split to one partition gathers in order", SPLIT, ["ab", "c", "d"], 1, ["abcd"]),
    ("split to more partitions than elements leaves the last ones empty", SPLIT, ["ab"], 4, ["a", "b", "", ""]),
    ("split skips a partition that reported nothing", SPLIT, ["ab", None], 1, ["ab"]),
    ("split at equal number starts a finished partition empty", SPLIT, ["ab", None], 2, ["ab", ""]),
    ("union gives everything to everyone", UNION, ["ab", "c"], 3, ["abc", "abc", "abc"]),
    ("union does so at an equal number too", UNION, ["a", "b"], 2, ["ab", "ab"]),
    ("broadcast takes the copy of the index modulo the old number", BROADCAST, ["x", "y"], 3, ["x", "y", "x"]),
    ("broadcast to fewer takes the first copies", BROADCAST, ["x", "y", "z"], 2, ["x", "y"]),
    ("broadcast at an equal number keeps the copies", BROADCAST, ["x", "y"], 2, ["x", "y"]),
    ("broadcast fills in a copy that was not reported", BROADCAST, ["x", None, "z"], 3, ["x", "z", "x"]),
    ("broadcast that nobody reported starts empty", BROADCAST, [None, None], 2, ["", ""]),
]


@pytest.mark.parametrize(
    ("kind", "old", "partitions", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_list_state_is_dealt_out_anew(kind, old, partitions, expected):
    assert redistribute(kind, old, partitions) == tuple(tuple(elements) for elements in expected)


@settings(deadline=None)
@given(old=st.lists(st.lists(st.integers()), min_size=1, max_size=8), partitions=st.integers(1, 20))
def test_split_loses_nothing_and_doubles_nothing(old, partitions):
    dealt = redistribute(SPLIT, old, partitions)
    assert len(dealt) == partitions
    assert [element for part in dealt for element in part] == [element for part in old for element in part]
    if partitions != len(old):
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_keyed_state_is_cut_to_the_groups_each_partition_owns():
    parts = [KeyedPart(range(0, 5), "first"), KeyedPart(range(5, 10), "second")]
    assert rescale_keyed(parts, partitions=3, max_parallelism=10) == (
        (KeyedPart(range(0, 4), "first"),),
        (KeyedPart(range(4, 5), "first"), KeyedPart(range(5, 7), "second")),
        (KeyedPart(range(7, 10), "second"),),
    )


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
    parts = [KeyedPart(range_of(index, old, max_parallelism), str(index)) for index in range(old)]
    rescaled = rescale_keyed(parts, partitions=new, max_parallelism=max_parallelism)
    assert [group for owned in rescaled for part in owned for group in part.groups] == list(range(max_parallelism))
    for index, owned in enumerate(rescaled):
        read = old_partitions_read(index, partitions=new, old_partitions=old, max_parallelism=max_parallelism)
        assert [int(part.reference) for part in owned] == list(read)
