"""Sets of partitions of one stage: their algebra, and the ways in which they are written and read.

A share is the neighbouring partitions of a region that one of its parallel tasks computes. It is known by its range and
never by its place among others: the number of tasks may change between two attempts, and what a task of the old cut
left belongs to whoever has the same partitions in the new one. None stands for all partitions of a region that is not
split.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import groupby

from stagehold.model.records import WHOLE

Ranges = tuple[tuple[int, int], ...]  # ascending pairs of the first and the last of each: so JSON has them
ALL_TOGETHER = "all together"  # what `WHOLE` is for people
MOST_RANGES = 12  # in a text for people


class PartitionSet(Set[int]):
    """Numbers of partitions. It is equal to any other set of the same numbers, and gives them in ascending order."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._numbers = frozenset(numbers)

    @staticmethod
    def parse(text: str) -> PartitionSet:
        """What somebody wrote, such as 3,5-7, or what `exact_text` writes.

        :raises ValueError: it names no partitions.
        """
        return PartitionSet(number for part in text.split(",") for number in _range(part))

    @staticmethod
    def named(ranges: Iterable[tuple[int, int]], known: Collection[int]) -> PartitionSet:
        """The partitions of ``known`` that the ranges name, and the ends of each range, known or not.

        A range of nothing but numbers that nobody knows costs no more than its two ends.
        """
        highest = max(known, default=-1)
        found: set[int] = set()
        for first, last in ranges:
            found.update(range(first, min(last, highest) + 1), (first, last))
        return PartitionSet(found)

    @property
    def ranges(self) -> Ranges:
        """Neighbours joined, so that a thousand partitions in a row are two numbers."""
        runs = (
            [number for _, number in run] for _, run in groupby(enumerate(self), key=lambda pair: pair[1] - pair[0])
        )
        return tuple((run[0], run[-1]) for run in runs)

    def __str__(self) -> str:
        """A text for people: 0-3, 7. Of very many ranges only the first and the last are told."""
        if WHOLE in self:
            others = self - {WHOLE}
            return ", ".join((ALL_TOGETHER, *([str(others)] if others else [])))
        texts = [*map(_range_text, self.ranges)]
        return ", ".join(texts if len(texts) <= MOST_RANGES else (*texts[: MOST_RANGES - 1], "...", texts[-1]))

    def __repr__(self) -> str:
        return f"PartitionSet({{{exact_text(self.ranges)}}})"

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __and__(self, other: Set[object]) -> PartitionSet:
        return PartitionSet(number for number in self._numbers if number in other)

    def __or__(self, other: Set[int]) -> PartitionSet:  # type: ignore[override]  # of numbers alone
        return PartitionSet((*self._numbers, *other))

    def __sub__(self, other: Set[object]) -> PartitionSet:
        return PartitionSet(number for number in self._numbers if number not in other)


NO_PARTITIONS = PartitionSet()


def exact_text(ranges: Iterable[tuple[int, int]]) -> str:
    """All of the ranges, as `PartitionSet.parse` reads them back."""
    return ",".join(map(_range_text, ranges))


def _range(part: str) -> range:
    first, _, last = part.strip().partition("-")
    return range(int(first), int(last or first) + 1)


def _range_text(ends: tuple[int, int]) -> str:
    first, last = ends
    return str(first) if first == last else f"{first}-{last}"


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
