"""How many partitions a stage has, if its file leaves that to the number of bytes that it reads.

The number is decided once for each interval, when all inputs are known, and then kept: if a restart changed it, one
half of a stage would be cut differently from the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stagehold.model.standing import DeclaredStage
from stagehold.spec.pipeline import Exchange, Pipeline, Stage

PIECES_PER_PARTITION = 32768  # a reader opens at most this many pieces, one per producer and group


@dataclass(frozen=True)
class CountedPipeline:
    """A pipeline for one interval. Of the ``undecided`` stages nothing was ever computed;
    their one partition stands for all.
    """

    pipeline: Pipeline
    undecided: frozenset[str]


def with_counts(pipeline: Pipeline, decided: Mapping[str, int]) -> CountedPipeline:
    """Put decided numbers, by stage id, where they belong:
    into the stages they were decided for, and their forward readers.
    """
    counts: dict[str, int | None] = {}
    for stage in pipeline.stages:
        counts[stage.name] = decided.get(stage.id) if stage.auto_partitions else _taken_over(stage, counts)
    stages = tuple(
        stage.model_copy(update={"partitions": counts[stage.name] or stage.partitions}) for stage in pipeline.stages
    )
    undecided = frozenset(name for name, count in counts.items() if count is None)
    return CountedPipeline(pipeline.model_copy(update={"stages": stages}), undecided)


def _taken_over(stage: Stage, counts: Mapping[str, int | None]) -> int | None:
    return next((counts[edge.stage] for edge in stage.inputs if edge.exchange is Exchange.FORWARD), stage.partitions)


def declared_stages(counted: CountedPipeline) -> tuple[DeclaredStage, ...]:
    """What the interval is to have of each stage whose output is stored."""
    return tuple(
        DeclaredStage(
            stage.id, None if stage.name in counted.undecided else stage.partitions, counted.pipeline.is_result(stage)
        )
        for stage in counted.pipeline.stages
        if stage.output.type.stored
    )


def divided_inputs(stage: Stage) -> tuple[str, ...]:
    """The producers whose rows are dealt out over the stage's partitions; every partition reads all of the others."""
    return tuple(edge.stage for edge in stage.inputs if edge.exchange is Exchange.KEYED)


def partitions_for(stage: Stage, pipeline: Pipeline, sizes: Mapping[str, int]) -> int:
    """The number for a stage whose divided inputs have ``sizes`` bytes, by producer.

    How many bytes a key group has is not on record: all are taken to be equally large, as a hash makes them but for hot
    keys.
    """
    inputs = [
        InputBytes(Exchange.KEYED, _dealt_out(sizes[name], stage.max_parallelism), pipeline.stage(name).partitions)
        for name in divided_inputs(stage)
    ]
    return decide_parallelism(inputs, ParallelismSettings(most=stage.max_parallelism)).partitions


def splits_for(stage: Stage, size: int, total: int, files: int) -> int:
    """The number for a source with ``total`` bytes in ``files`` files: splits of about ``size`` bytes each.

    Never more than there are files, since files are not cut, nor more than the stage allows.
    """
    return min(max(_ceil(total, size), 1), max(files, 1), stage.max_parallelism)


def _dealt_out(total: int, groups: int) -> tuple[int, ...]:
    return tuple(total * (group + 1) // groups - total * group // groups for group in range(groups))


@dataclass(frozen=True)
class InputBytes:
    """The size of one input by key group; of an input without keys, the sizes that add up to its total."""

    exchange: Exchange
    sizes: tuple[int, ...]
    producers: int = 1


@dataclass(frozen=True)
class ParallelismSettings:
    """Flink's defaults. ``fixed`` is a number that was decided before."""

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
    return Parallelism(partitions, _evenly(groups, partitions) if groups else ())


def _by_total(divided: Sequence[InputBytes], settings: ParallelismSettings) -> int:
    if not divided:
        return settings.least
    by_bytes = _ceil(sum(sum(each.sizes) for each in divided), settings.bytes_per_partition)
    by_pieces = _ceil(max(len(each.sizes) for each in divided), PIECES_PER_PARTITION)
    return min(max(by_bytes, by_pieces, settings.least), settings.most)


def _evenly(groups: int, partitions: int) -> tuple[range, ...]:
    """Equal numbers of groups, rounded down like Flink's subpartitions; ranges of state are rounded up."""
    starts = [index * groups // partitions for index in range(partitions + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(starts))


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
        """The fewest ranges that are enough, with the lowest limit that gives as few:
        the lower it is, the more even they are.
        """
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
