"""Partitions as the page is told them, and tells them: ascending pairs of the first and the last of each range."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby

Ranges = tuple[tuple[int, int], ...]


def as_ranges(partitions: Iterable[int]) -> Ranges:
    """Neighbours joined, so that a thousand partitions in a row are two numbers."""
    numbered = enumerate(sorted(partitions))
    runs = [[partition for _, partition in run] for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])]
    return tuple((run[0], run[-1]) for run in runs)


def numbers_in(ranges: Iterable[tuple[int, int]], known: Collection[int]) -> frozenset[int]:
    """Those of the ``known`` that the ranges name, and the ends of each range, known or not.

    A range of nothing but numbers that nobody knows costs no more than its two ends.
    """
    highest = max(known, default=-1)
    named: set[int] = set()
    for first, last in ranges:
        named.update(range(first, min(last, highest) + 1), (first, last))
    return frozenset(named)
