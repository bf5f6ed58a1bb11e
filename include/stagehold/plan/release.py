"""Which partitions may be deleted before the run ends: those whose every reading region has finished.

Releasing early saves space and costs recomputation, since a later failure may then reach back to the sources. Nothing
here remembers what was released: the tracker does, and answers whether a partition is still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from stagehold.model.output_types import ReleasedBy, properties_of
from stagehold.model.records import AttemptState
from stagehold.plan.partition_regions import PartitionRegions


class ReleaseStrategy(Protocol):
    """Told which vertices finish or are reset; answers which partitions may be deleted now."""

    def finished(self, vertex: str) -> tuple[str, ...]:
        """A vertex has finished."""

    def unfinished(self, vertex: str) -> None:
        """A vertex was reset, so what it reads is needed again."""


class KeepUntilEnd:
    """Deletes nothing while the run goes on."""

    def finished(self, vertex: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def unfinished(self, vertex: str) -> None:
        """Nothing was released, so nothing is needed again."""


class ReleaseByRegion:
    """Releases what a region read when the last of its vertices finishes, if nobody else still reads it.

    A partition without readers is not released here, and neither is a persistent one, nor one its producer releases.
    """

    def __init__(self, regions: PartitionRegions) -> None:
        self._regions = regions
        self._finished = bytearray(len(regions.topology.vertices))
        self._unfinished_in = [len(members) for members in regions.members]  # vertices, by region
        self._unfinished_reading = [len(readers) for readers in regions.reading]  # regions, by group

    def finished(self, vertex: str) -> tuple[str, ...]:
        number = self._regions.topology.vertex_number(vertex)
        region = self._regions.region_of[number]
        if self._finished[number]:
            return ()
        self._finished[number] = True
        self._unfinished_in[region] -= 1
        if self._unfinished_in[region] > 0:
            return ()
        read = self._regions.groups_read[region]
        for group in read:
            self._unfinished_reading[group] -= 1
        return self._releasable(group for group in read if self._unfinished_reading[group] == 0)

    def unfinished(self, vertex: str) -> None:
        number = self._regions.topology.vertex_number(vertex)
        region = self._regions.region_of[number]
        if not self._finished[number]:
            return
        self._finished[number] = False
        self._unfinished_in[region] += 1
        if self._unfinished_in[region] == 1:
            for group in self._regions.groups_read[region]:
                self._unfinished_reading[group] += 1

    def _releasable(self, groups: Iterable[int]) -> tuple[str, ...]:
        topology = self._regions.topology
        early = (group for group in groups if _released_early(self._regions, group))
        numbers = dict.fromkeys(number for group in early for number in topology.group_partitions[group])
        return tuple(topology.partitions[number].id for number in numbers if self._unread(number))

    def _unread(self, partition: int) -> bool:
        return all(self._unfinished_reading[group] == 0 for group in self._regions.topology.groups_reading[partition])


def _released_early(regions: PartitionRegions, group: int) -> bool:
    properties = properties_of(regions.topology.groups[group].type)
    return properties.released_by is ReleasedBy.SCHEDULER and not properties.persistent


def releasable_partitions(regions: PartitionRegions, states: Mapping[str, AttemptState]) -> tuple[str, ...]:
    """All partitions that may be deleted when vertices are in these states, in the order of the topology."""
    strategy = ReleaseByRegion(regions)
    released = {
        partition
        for vertex in regions.topology.position
        if states.get(vertex) is AttemptState.FINISHED
        for partition in strategy.finished(vertex)
    }
    return tuple(partition.id for partition in regions.topology.partitions if partition.id in released)
