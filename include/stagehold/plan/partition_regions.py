"""Regions of a topology: the vertices that start, fail and restart together.

Pointwise pipelined exchanges give many small regions, an all-to-all one gives a single region. Unlike stages, regions of
vertices that wait for each other through other exchanges are merged: apart, neither could ever start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.model.graph import UnionFind, strong_components, topological_order
from stagehold.model.output_types import properties_of
from stagehold.model.topology import Topology

Components = Sequence[Sequence[int]]


@dataclass(frozen=True)
class PartitionRegions:
    """Every vertex in exactly one region; ``regions`` are in topological order and known by their place in it."""

    topology: Topology
    regions: tuple[tuple[str, ...], ...]

    @cached_property
    def region_of(self) -> Mapping[str, int]:
        return {vertex: number for number, region in enumerate(self.regions) for vertex in region}

    @cached_property
    def producing(self) -> Sequence[tuple[int, ...]]:
        """For every group of the topology, the regions that produce its partitions."""
        return [self._regions(producers) for producers in self.topology.producers_of_group]

    @cached_property
    def reading(self) -> Sequence[tuple[int, ...]]:
        """For every group of the topology, the regions that read it."""
        return [self._regions(group.consumers) for group in self.topology.groups]

    @cached_property
    def groups_read(self) -> Sequence[Sequence[int]]:
        """For every region, the groups it reads, also those it produces itself."""
        return _inverted(self.reading, len(self.regions))

    @cached_property
    def groups_produced(self) -> Sequence[Sequence[int]]:
        """For every region, the groups that hold a partition of its own."""
        return _inverted(self.producing, len(self.regions))

    def _regions(self, vertices: Iterable[str]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.region_of[vertex] for vertex in vertices))


def partition_regions(topology: Topology) -> PartitionRegions:
    """The regions of a topology; vertices that name one ``co_location`` are put into one region."""
    merged = _merged_cycles(topology, _fused(topology))
    regions = _named(topology, merged)
    order = topological_order(_successors(PartitionRegions(topology, regions)))
    first = len(topology.groups)
    return PartitionRegions(topology, tuple(regions[node - first] for node in order if node >= first))


def _fused(topology: Topology) -> Components:
    joined, position = UnionFind(len(topology.vertices)), topology.position
    for group, producers in zip(topology.groups, topology.producers_of_group, strict=True):
        if properties_of(group.type).consumed_while_produced:
            joined.join(position[vertex] for vertex in (*producers, *group.consumers))
    co_located: dict[str, list[int]] = {}
    for index, vertex in enumerate(topology.vertices):
        if vertex.co_location is not None:
            co_located.setdefault(vertex.co_location, []).append(index)
    for together in co_located.values():
        joined.join(together)
    return joined.components()


def _merged_cycles(topology: Topology, components: Components) -> Components:
    """Data flows through groups, so the graph of regions and groups has an edge per read and not per pair of regions."""
    node_of = {vertex: node for node, component in enumerate(components) for vertex in component}
    successors: list[list[int]] = [[] for _ in range(len(components) + len(topology.groups))]
    for node, targets in enumerate(topology.flow()):
        if node < len(topology.vertices):
            successors[node_of[node]].extend(target - len(topology.vertices) + len(components) for target in targets)
        else:
            successors[node - len(topology.vertices) + len(components)].extend(node_of[target] for target in targets)
    cycles = ([node for node in nodes if node < len(components)] for nodes in strong_components(successors))
    merged = (sorted(vertex for node in nodes for vertex in components[node]) for nodes in cycles if nodes)
    return sorted(merged)


def _named(topology: Topology, components: Components) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(topology.vertices[index].id for index in component) for component in components)


def _successors(found: PartitionRegions) -> list[list[int]]:
    """Edges of the region graph through group nodes, without a region's edges to itself.

    Groups are numbered before regions, so that a region is ordered as soon as the last one it reads from is. At most one
    region both produces and reads a group, since two would have been merged: giving it its edges directly stays linear.
    """
    first = len(found.reading)
    successors: list[list[int]] = [[] for _ in range(first + len(found.regions))]
    for group, (producers, readers) in enumerate(zip(found.producing, found.reading, strict=True)):
        itself = set(producers).intersection(readers)
        successors[group] = [first + reader for reader in readers if reader not in itself]
        for producer in producers:
            successors[first + producer].append(group)
            successors[first + producer].extend(first + reader for reader in itself if reader != producer)
    return successors


def _inverted(regions_of_group: Sequence[tuple[int, ...]], count: int) -> Sequence[Sequence[int]]:
    groups: list[list[int]] = [[] for _ in range(count)]
    for number, regions in enumerate(regions_of_group):
        for region in regions:
            groups[region].append(number)
    return groups
