"""Some of a stage's partitions: the share of a task, and ranges as pages tell them and are told them.

A share is the neighbouring partitions of a region that one of its parallel tasks computes. It is known by its range and
never by its place among others: the number of tasks may change between two attempts, and what a task of the old cut
left belongs to whoever has the same partitions in the new one. None stands for all partitions of a region that is not
split.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

WRITTEN = re.compile(r"(\d+)-(\d+)")
Ranges = tuple[tuple[int, int], ...]  # ascending pairs of the first and the last of each


@dataclass(frozen=True, order=True)
class Share:
    """The partitions from ``first`` to ``last``, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def __contains__(self, partition: int) -> bool:
        return self.first <= partition <= self.last

    @property
    def partitions(self) -> range:
        return range(self.first, self.last + 1)

    @staticmethod
    def parse(text: str) -> Share | None:
        """What `str` wrote; None for any other text."""
        match = WRITTEN.fullmatch(text)
        return Share(int(match[1]), int(match[2])) if match else None


def overlap(one: Share | None, other: Share | None) -> bool:
    """Whether two shares have a partition in common."""
    return one is None or other is None or (one.first <= other.last and other.first <= one.last)


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
