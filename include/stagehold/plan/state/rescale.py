"""What becomes of a stage's state when its number of partitions changes, by Flink's rules.

Keyed state is found again by key group, so only the ranges move. List state has no keys; its kind says how the elements
are dealt out anew. Nothing here reads state.
"""

from __future__ import annotations

from stagehold.model.keys.key_groups import index_of_group, range_of
from stagehold.model.stage_state import StateKind


def old_partitions_read(index: int, *, partitions: int, old_partitions: int, max_parallelism: int) -> range:
    """The old partitions whose groups partition ``index`` of ``partitions`` needs; no other has to be opened."""
    own = range_of(index, partitions, max_parallelism)
    first, last = (index_of_group(group, old_partitions, max_parallelism) for group in (own[0], own[-1]))
    return range(first, last + 1)


def old_lists_read(kind: StateKind, index: int, *, partitions: int, old_partitions: int) -> range:
    """The old partitions whose lists partition ``index`` of ``partitions`` is given: its own, or everybody's;
    of a split list that is dealt anew, its `slice_of` them all.
    """
    if kind is StateKind.BROADCAST:
        return range(index % old_partitions, index % old_partitions + 1)
    if kind is StateKind.SPLIT and partitions == old_partitions:
        return range(index, index + 1)
    return range(old_partitions)


def slice_of(count: int, index: int, partitions: int) -> range:
    """Which of ``count`` elements partition ``index`` is dealt: contiguous slices, the first ones one element longer
    where the count does not divide.
    """
    size, longer = divmod(count, partitions)
    start = index * size + min(index, longer)
    return range(start, start + size + (index < longer))
