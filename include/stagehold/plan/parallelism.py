"""How many partitions a stage should have, from the bytes it reads, and which key groups each of them takes.

Decided once, when all inputs are known, and kept: a restart may not change it, or half of a stage would be cut otherwise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from stagehold.model.key_groups import range_of
from stagehold.model.spec import Exchange

PIECES_PER_PARTITION = 32768  # a reader opens at most this many pieces, one per producer and group


@dataclass(frozen=True)
class InputBytes:
    """The size of one input, by key group; of an input that is not keyed, the sizes that make up its total."""

    exchange: Exchange
    sizes: tuple[int, ...]
    producers: int = 1


@dataclass(frozen=True)
class ParallelismSettings:
    """Flink's defaults. ``fixed`` is the number that somebody decided before."""

    bytes_per_partition: int = 16 * 1024 * 1024
    least: int = 1
    most: int = 128
    fixed: int | None = None


@dataclass(frozen=True)
class Parallelism:
    """The number of partitions, and the key groups of each; no groups when no input is keyed."""

    partitions: int
    groups: tuple[range, ...]


def decide_parallelism(inputs: Sequence[InputBytes], settings: ParallelismSettings) -> Parallelism:
    """Partitions of about ``bytes_per_partition`` each.

    Broadcast and gathered inputs do not count, since every partition reads all of them. Groups are packed by size while
    all inputs but those are keyed; next to a forward input, or with a fixed number, every partition takes equally many.
    """
    divided = [each for each in inputs if each.exchange in (Exchange.KEYED, Exchange.FORWARD)]
    keyed = [each for each in divided if each.exchange is Exchange.KEYED]
    if settings.fixed is None and keyed and len(keyed) == len(divided):
        packed = _packed_by_size(keyed, settings)
        if packed is not None:
            return Parallelism(len(packed), packed)
    partitions = settings.fixed or _by_total(divided, settings)
    groups = max((len(each.sizes) for each in keyed), default=0)
    return Parallelism(partitions, tuple(range_of(index, partitions, groups) for index in range(partitions)) if groups else ())


def source_partitions(*, configured: int, most: int) -> int:
    """A source that does not compute its own number takes the configured one, as far as the stage allows."""
    return min(configured, most)


def _by_total(divided: Sequence[InputBytes], settings: ParallelismSettings) -> int:
    if not divided:
        return settings.least
    by_bytes = _ceil(sum(sum(each.sizes) for each in divided), settings.bytes_per_partition)
    by_pieces = _ceil(max(len(each.sizes) for each in divided), PIECES_PER_PARTITION)
    return min(max(by_bytes, by_pieces, settings.least), settings.most)


def _packed_by_size(keyed: Sequence[InputBytes], settings: ParallelismSettings) -> tuple[range, ...] | None:
    """Ranges of groups near the wanted size, or None when no limit leads to an allowed number of them."""
    packer = _Packer(
        sizes=[sum(sizes) for sizes in zip(*(each.sizes for each in keyed), strict=True)],
        widest=max(1, PIECES_PER_PARTITION // max(each.producers for each in keyed)),
    )
    limit = settings.bytes_per_partition
    if packer.count(limit) < settings.least:
        limit = packer.evenest_limit_for(settings.least, limit)
    elif packer.count(limit) > settings.most:
        limit = packer.lowest_limit_for(settings.most, limit)
    return packer.pack(limit) if settings.least <= packer.count(limit) <= settings.most else None


@dataclass(frozen=True)
class _Packer:
    """Packs neighbouring groups greedily. A higher limit never gives more ranges, so limits can be bisected."""

    sizes: Sequence[int]
    widest: int

    def pack(self, limit: int) -> tuple[range, ...]:
        """Each range holds at most ``limit`` bytes, unless a single group is larger, and at most ``widest`` groups."""
        starts, held = [0], 0
        for group, size in enumerate(self.sizes):
            if group > starts[-1] and (held + size > limit or group - starts[-1] >= self.widest):
                starts.append(group)
                held = 0
            held += size
        return tuple(range(start, stop) for start, stop in zip(starts, (*starts[1:], len(self.sizes)), strict=True))

    def count(self, limit: int) -> int:
        return len(self.pack(limit))

    def evenest_limit_for(self, least: int, limit: int) -> int:
        """The fewest ranges that are enough, with the lowest limit that gives as few: the lower it is, the more even they are."""
        limits = range(limit + 1)
        enough = limits[max(bisect_right(limits, -least, key=self._fewer) - 1, 0)]
        return limits[bisect_left(limits, self._fewer(enough), key=self._fewer)]

    def lowest_limit_for(self, most: int, limit: int) -> int:
        limits = range(limit, max(limit, sum(self.sizes)) + 1)
        return limits[min(bisect_left(limits, -most, key=self._fewer), len(limits) - 1)]

    def _fewer(self, limit: int) -> int:
        return -self.count(limit)


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
