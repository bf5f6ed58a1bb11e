"""Regions of a topology: the vertices that start, fail and restart together.

Pointwise pipelined exchanges give many small regions, an all-to-all one gives a single region. Unlike stages, regions
of vertices that wait for each other through other exchanges are merged: apart, neither could ever start.

A partition may be deleted before the run ends when every region that reads it has finished. Releasing early saves space
and costs recomputation, since a later failure may then reach back to the sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.model.graph import fused, strong_components, topological_order
from stagehold.model.records import AttemptState
from stagehold.spec.pipeline import OutputType
from stagehold.spec.settings.output_settings import ReleasedBy
from stagehold.topology.topology import Numbers, Topology, inverted

Components = Sequence[Sequence[int]]


@dataclass(frozen=True)
class PartitionRegions:
    """Every vertex in exactly one region; regions are in topological order and known by their place in it.

    ``members`` are the numbers of each region's vertices.
    """

    topology: Topology
    members: tuple[tuple[int, ...], ...]

    @cached_property
    def regions(self) -> tuple[tuple[str, ...], ...]:
        """The ids of each region's vertices."""
        vertices = self.topology.vertices
        return tuple(tuple(vertices[number].id for number in members) for members in self.members)

    @cached_property
    def region_of(self) -> Numbers:
        """The region of every vertex."""
        regions = [0] * len(self.topology.vertices)
        for region, members in enumerate(self.members):
            for number in members:
                regions[number] = region
        return regions

    @cached_property
    def producing(self) -> Sequence[Numbers]:
        """The regions that produce the partitions of every group of the topology."""
        return [self._regions(producers) for producers in self.topology.group_producers]

    @cached_property
    def reading(self) -> Sequence[Numbers]:
        """The regions that read every group of the topology."""
        return [self._regions(consumers) for consumers in self.topology.group_consumers]

    @cached_property
    def groups_read(self) -> Sequence[Numbers]:
        """The groups that every region reads, also those it produces itself."""
        return inverted(self.reading, len(self.members))

    @cached_property
    def groups_produced(self) -> Sequence[Numbers]:
        """The groups that hold a partition of each region."""
        return inverted(self.producing, len(self.members))

    def region_with(self, vertex: str) -> int:
        """The region of the vertex called so, or UnknownName."""
        return self.region_of[self.topology.vertex_number(vertex)]

    def producer(self, partition: int) -> int:
        """The region that produces a partition."""
        return self.region_of[self.topology.producer_of[partition]]

    def _regions(self, vertices: Numbers) -> Numbers:
        return list(dict.fromkeys(self.region_of[vertex] for vertex in vertices))


def partition_regions(topology: Topology) -> PartitionRegions:
    """The regions of a topology; vertices that name one ``co_location`` are put into one region."""
    merged = PartitionRegions(topology, _merged_cycles(topology, _fused(topology)))
    first = len(topology.groups)
    order = topological_order(_successors(merged))
    return PartitionRegions(topology, tuple(merged.members[node - first] for node in order if node >= first))


def _fused(topology: Topology) -> Components:
    glued = (
        (*topology.group_producers[number], *topology.group_consumers[number])
        for number, group in enumerate(topology.groups)
        if group.type.consumed_while_produced
    )
    return fused(glued, [vertex.co_location for vertex in topology.vertices])


def _merged_cycles(topology: Topology, components: Components) -> tuple[tuple[int, ...], ...]:
    """Data flows through groups, so the graph of regions and groups has an edge per read and not per pair of
    regions.
    """
    apart = PartitionRegions(topology, tuple(map(tuple, components)))
    first = len(components)
    successors = [*([first + group for group in groups] for groups in apart.groups_produced), *apart.reading]
    cycles = ([node for node in nodes if node < first] for nodes in strong_components(successors))
    return tuple(
        sorted(tuple(sorted(vertex for node in nodes for vertex in components[node])) for nodes in cycles if nodes)
    )


def _successors(found: PartitionRegions) -> list[list[int]]:
    """Edges of the region graph through group nodes, without a region's edges to itself.

    Groups are numbered before regions, so that a region is ordered as soon as the last one it reads from is. At most
    one region both produces and reads a group, since two would have been merged: giving it its edges directly stays
    linear.
    """
    first = len(found.reading)
    successors: list[list[int]] = [[] for _ in range(first + len(found.members))]
    for group, (producers, readers) in enumerate(zip(found.producing, found.reading, strict=True)):
        itself = set(producers).intersection(readers)
        successors[group] = [first + reader for reader in readers if reader not in itself]
        for producer in producers:
            successors[first + producer].append(group)
            successors[first + producer].extend(first + reader for reader in itself if reader != producer)
    return successors


def releasable_partitions(regions: PartitionRegions, states: Mapping[str, AttemptState]) -> tuple[str, ...]:
    """What may be deleted when vertices are in these states, in the order of the topology.

    A partition without readers is not released early, and neither is a persistent one, nor one its producer releases.
    """
    topology = regions.topology
    finished = [all(states.get(name) is AttemptState.FINISHED for name in region) for region in regions.regions]
    read = [all(finished[region] for region in readers) for readers in regions.reading]
    return tuple(
        partition.id
        for partition, groups in zip(topology.partitions, topology.groups_reading, strict=True)
        if groups and all(read[group] for group in groups) and _released_early(partition.type)
    )


def _released_early(kind: OutputType) -> bool:
    return kind.released_by is ReleasedBy.SCHEDULER and not kind.persistent
