"""The share of a task: the neighbouring partitions of a region that one of its parallel tasks computes.

It is known by its range and never by its place among others: the number of tasks may change between two attempts, and
what a task of the old cut left belongs to whoever has the same partitions in the new one. None stands for all
partitions of a region that is not split.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WRITTEN = re.compile(r"(\d+)-(\d+)")


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
