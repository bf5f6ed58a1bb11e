"""Partitions that are far larger than the others of their stage:
they decide how long a wave lasts, and what a kill costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high

from stagehold.model.records import PartitionRecord

THRESHOLD = 5  # times the median, in rows or in bytes


@dataclass(frozen=True)
class Skew:
    """A partition of which ``amount`` is more than `THRESHOLD` times what is ``usual`` in its stage;
    ``unit`` is rows or bytes.
    """

    partition: int
    unit: str
    amount: int
    usual: int

    @property
    def factor(self) -> float:
        return self.amount / self.usual

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}, {self.factor:.1f} times the median of {self.usual}"


def skewed(records: Sequence[PartitionRecord]) -> Mapping[int, tuple[Skew, ...]]:
    """Skewed partitions of one stage, each with its rows, its bytes, or both; ``records`` are the newest of every
    partition.

    Of an even number the median is the higher one in the middle, so it is some partition's. Where more than half are
    empty it is that of the others, since nothing is a multiple of nothing.
    """
    rows = {record.partition: record.rows for record in records}
    sizes = {record.partition: record.bytes for record in records}
    found = [*_above("rows", rows), *_above("bytes", sizes)]
    return {
        partition: tuple(skew for skew in found if skew.partition == partition)
        for partition in sorted({skew.partition for skew in found})
    }


def skew_text(found: Sequence[Skew]) -> str:
    """Everything about one partition."""
    return "; ".join(map(str, found))


def _above(unit: str, amounts: Mapping[int, int]) -> list[Skew]:
    usual = median_high(amounts.values()) if amounts else 0
    usual = usual or median_high([amount for amount in amounts.values() if amount] or [0])
    return [Skew(partition, unit, amount, usual) for partition, amount in amounts.items() if amount > THRESHOLD * usual]
