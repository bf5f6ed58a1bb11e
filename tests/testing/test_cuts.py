from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stagehold.testing.cuts import random_cut


@given(groups=st.lists(st.integers(0, 5)), seed=st.integers())
def test_each_row_is_in_one_part_and_a_group_is_not_torn(groups, seed):
    parts = random_cut(groups, Random(seed))
    assert 2 <= len(parts) <= 4
    assert sorted(place for part in parts for place in part) == list(range(len(groups)))
    of_group = {
        group: {number for number, part in enumerate(parts) for place in part if groups[place] == group}
        for group in groups
    }
    assert all(len(numbers) == 1 for numbers in of_group.values())


def test_some_cuts_leave_a_part_empty_and_others_do_not():
    cuts = [random_cut(range(4), Random(seed)) for seed in range(50)]
    assert {any(not part for part in parts) for parts in cuts} == {True, False}
