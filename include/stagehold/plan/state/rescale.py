"""What becomes of a stage's state when its number of partitions changes, by Flink's rules.

Keyed state is found again by key group, so only the ranges move. List state has no keys; its kind says how the elements
are dealt out anew. Nothing here reads state: a part is whatever reference its owner keeps, and parts keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeVar

from stagehold.model.key_groups import index_of_group, intersect, range_of
from stagehold.model.stage_state import StateKind

Element = TypeVar("Element")


@dataclass(frozen=True)
class KeyedPart:
    """A stored piece of keyed state: the groups in it, and where it is."""

    groups: range
    reference: str


def old_partitions_read(index: int, *, partitions: int, old_partitions: int, max_parallelism: int) -> range:
    """The old partitions whose groups partition ``index`` of ``partitions`` needs; no other has to be opened."""
    return _owners(range_of(index, partitions, max_parallelism), old_partitions, max_parallelism)


def rescale_keyed(
    parts: Sequence[KeyedPart], *, partitions: int, max_parallelism: int
) -> tuple[tuple[KeyedPart, ...], ...]:
    """For each of ``partitions``, the parts it reads, each cut to the groups that it owns.

    ``max_parallelism`` is the one the state was written with: a group means something else under any other.
    """
    read: list[list[KeyedPart]] = [[] for _ in range(partitions)]
    for part in parts:
        for index in _owners(part.groups, partitions, max_parallelism):
            read[index].append(
                KeyedPart(intersect(part.groups, range_of(index, partitions, max_parallelism)), part.reference)
            )
    return tuple(map(tuple, read))


def redistribute(
    kind: StateKind, old: Sequence[Sequence[Element] | None], partitions: int
) -> tuple[tuple[Element, ...], ...]:
    """For each of ``partitions``, the elements it starts with.

    :param old: what every old partition held; None for one that had finished and no longer reported any.
    """
    if kind is StateKind.UNION:
        return (tuple(chain.from_iterable(_reported(old))),) * partitions
    if kind is StateKind.BROADCAST:
        return _copied(old, partitions)
    if len(old) == partitions:
        return tuple(tuple(elements or ()) for elements in old)
    elements = tuple(chain.from_iterable(_reported(old)))
    return tuple(elements[slice.start : slice.stop] for slice in dealt(len(elements), partitions))


def _owners(groups: range, partitions: int, max_parallelism: int) -> range:
    """The partitions that own any of ``groups``."""
    if not groups:
        return range(0)
    first, last = (index_of_group(group, partitions, max_parallelism) for group in (groups[0], groups[-1]))
    return range(first, last + 1)


def _reported(old: Sequence[Sequence[Element] | None]) -> list[Sequence[Element]]:
    return [elements for elements in old if elements is not None]


def _copied(old: Sequence[Sequence[Element] | None], partitions: int) -> tuple[tuple[Element, ...], ...]:
    """Copy ``index mod old``; the copies are equal, so one that was not reported is filled in from those that were."""
    copies = _reported(old)
    return tuple(tuple(copies[index % len(copies)]) if copies else () for index in range(partitions))


def dealt(count: int, partitions: int) -> tuple[range, ...]:
    """Contiguous slices of ``count`` elements, the first ones one element longer where the count does not divide."""
    size, longer = divmod(count, partitions)
    starts = [index * size + min(index, longer) for index in range(partitions + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(starts))
