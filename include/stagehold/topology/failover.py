"""Which vertices restart after a failure.

Breadth first from the failed region, for every region taken: climb to the producers of inputs that are not available
now, and go down to all consumers of its outputs, also to finished ones, since a producer that runs again may produce
other data. Vertices that were never started are left alone.

With early cutoff, as in a resume, what is produced again only because it was lost counts as equal: consumers that have
finished are spared then. Flink has no such rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stagehold.model.records import AttemptState
from stagehold.topology.partition_regions import PartitionRegions


class Availability(Protocol):
    """Asked at failure time and never remembered: can this partition be read now?"""

    def __call__(self, partition: str, /) -> bool: ...


class RestartCause(StrEnum):
    """Why a vertex restarts."""

    FAILED = "failed"
    INPUT_LOST = "input_lost"  # its output is needed and not available
    UPSTREAM_RESTARTS = "upstream_restarts"  # it reads what will be produced again


@dataclass(frozen=True, slots=True)
class Restart:
    """A vertex to restart. ``through`` is the partition that led to its region, None for the failed."""

    vertex: str
    cause: RestartCause
    through: str | None = None

    @property
    def reason(self) -> str:
        texts = {
            RestartCause.FAILED: "it failed, or runs together with what failed",
            RestartCause.INPUT_LOST: f"{self.through} is needed and is not available",
            RestartCause.UPSTREAM_RESTARTS: f"{self.through}, which its region reads, will be produced again",
        }
        return texts[self.cause]


@dataclass(frozen=True)
class FailureSituation:
    """What is known at the moment of a failure. A vertex that ``states`` does not name was never started."""

    regions: PartitionRegions
    states: Mapping[str, AttemptState]
    available: Availability

    def state(self, vertex: str) -> AttemptState:
        return self.states.get(vertex, AttemptState.CREATED)


def region_failover(
    situation: FailureSituation, failed: Sequence[str], missing: Sequence[str] = ()
) -> tuple[Restart, ...]:
    """The vertices that a failure of single vertices restarts, in topology order, by Flink's rule.

    ``available`` is asked at most once for every partition, and only for inputs of regions that restart.

    :param failed: the vertices that failed.
    :param missing: partitions that the cause names as unreadable; they count for this failure only.
    """
    return failover(situation, failed, missing, early_cutoff=False)[0]


def failover(
    situation: FailureSituation, failed: Sequence[str], missing: Sequence[str] = (), *, early_cutoff: bool
) -> tuple[tuple[Restart, ...], tuple[tuple[str, str], ...]]:
    """What `region_failover` restarts; and which vertices are spared, each with the reason.

    :param early_cutoff: spare consumers that have finished, where what they read was only lost.
    """
    topology = situation.regions.topology
    missed = frozenset(topology.partition_number(name) for name in missing)
    search = _Search(situation, missed, early_cutoff=early_cutoff)
    for vertex in failed:
        search.take(situation.regions.region_with(vertex), RestartCause.FAILED)
    search.spread()
    restarts, spared = [], []
    for known, region in zip(topology.vertices, situation.regions.region_of, strict=True):
        if situation.state(known.id) is AttemptState.CREATED:
            continue
        if (reached_by := search.taken.get(region)) is not None:
            restarts.append(Restart(known.id, *reached_by))
        elif region in search.spared:
            through = f"{search.spared[region]}, which its region reads"
            spared.append((known.id, f"{through}, was lost and comes out equal (early cutoff)"))
    return tuple(restarts), tuple(spared)


class _Search:
    """Which regions restart, and why. Every region is taken once, with early cutoff twice at
    most, and every exchange group looked at as often in each direction, so the cost is linear.
    """

    def __init__(self, situation: FailureSituation, missing: Collection[int], *, early_cutoff: bool) -> None:
        self._situation, self._missing, self._early_cutoff = situation, missing, early_cutoff
        self._regions, self._topology = situation.regions, situation.regions.topology
        self._queue: deque[int] = deque()
        self._climbed: set[int] = set()
        self._descended: dict[bool, set[int]] = {True: set(), False: set()}  # by whether it comes out equal
        self.taken: dict[int, tuple[RestartCause, str | None]] = {}  # by region, why it restarts
        self.spared: dict[int, str] = {}  # by region, the partition that comes out equal

    def take(self, region: int, cause: RestartCause, through: str | None = None) -> None:
        """Take the region, unless it is. One that was only lost, and reads what comes out different, does so too."""
        if region not in self.taken or (cause is RestartCause.UPSTREAM_RESTARTS and self._comes_out_equal(region)):
            self.taken[region] = cause, through
            self._queue.append(region)

    def _comes_out_equal(self, region: int) -> bool:
        return self._early_cutoff and self.taken[region][0] is RestartCause.INPUT_LOST

    def spread(self) -> None:
        while self._queue:
            region = self._queue.popleft()
            for group in _unseen(self._regions.groups_read[region], self._climbed):
                self._climb(group)
            equal = self._comes_out_equal(region)
            for group in _unseen(self._regions.groups_produced[region], self._descended[equal]):
                self._descend(region, group, equal=equal)

    def _climb(self, group: int) -> None:
        for partition in self._topology.group_partitions[group]:
            if not self._readable(partition):
                lost = self._topology.partitions[partition].id
                self.take(self._regions.producer(partition), RestartCause.INPUT_LOST, lost)

    def _readable(self, number: int) -> bool:
        """Whether a partition can be read again: asked anew, for a type that allows it, and not named as missing."""
        partition = self._topology.partitions[number]
        return number not in self._missing and partition.type.reconsumable and self._situation.available(partition.id)

    def _descend(self, region: int, group: int, *, equal: bool) -> None:
        own = next(
            number for number in self._topology.group_partitions[group] if self._regions.producer(number) == region
        )
        through = self._topology.partitions[own].id
        for consumer in self._regions.reading[group]:
            if equal and self._has_finished(consumer):
                self.spared.setdefault(consumer, through)
            else:
                self.take(consumer, RestartCause.UPSTREAM_RESTARTS, through)

    def _has_finished(self, region: int) -> bool:
        return all(self._situation.state(vertex) is AttemptState.FINISHED for vertex in self._regions.regions[region])


def _unseen(groups: Iterable[int], seen: set[int]) -> Iterator[int]:
    for group in groups:
        if group not in seen:
            seen.add(group)
            yield group
