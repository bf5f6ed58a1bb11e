"""The graph that is planned on: vertices, the result partitions they produce, and who reads those.

A vertex computes one partition of a stage, a result partition is what it leaves behind. Reads are kept as exchange
groups, in each of which every consumer reads every partition: an all-to-all exchange is one group however wide it is,
so nothing here or in the planners costs producers times consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.errors import UnknownName
from stagehold.spec.pipeline import OutputType

Numbers = Sequence[int]

# A graph may have 100,000 names; an error text must stay readable.
SHOWN_NAMES = 20


@dataclass(frozen=True, slots=True)
class Vertex:
    """The computation of one partition of a stage; vertices that name one ``co_location`` must be in one region."""

    id: str
    stage: str
    index: int = 0
    co_location: str | None = None


@dataclass(frozen=True, slots=True)
class ResultPartition:
    """What one vertex produces."""

    id: str
    producer: str
    type: OutputType


@dataclass(frozen=True, slots=True)
class ExchangeGroup:
    """Partitions of one type and their consumers: each of the consumers reads each of the partitions."""

    partitions: tuple[str, ...]
    consumers: tuple[str, ...]
    type: OutputType


@dataclass(frozen=True)
class Topology:
    """A checked graph, made by `topology_build`; every id in it resolves.

    Planners work with numbers, the places in ``vertices``, ``partitions`` and ``groups``: names are looked up once.
    """

    vertices: tuple[Vertex, ...]
    partitions: tuple[ResultPartition, ...]
    groups: tuple[ExchangeGroup, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Number of every vertex."""
        return {vertex.id: number for number, vertex in enumerate(self.vertices)}

    @cached_property
    def partition_position(self) -> Mapping[str, int]:
        """Number of every partition."""
        return {partition.id: number for number, partition in enumerate(self.partitions)}

    @cached_property
    def producer_of(self) -> Numbers:
        """The vertex that produces each partition."""
        return [self.position[partition.producer] for partition in self.partitions]

    @cached_property
    def outputs(self) -> Sequence[Numbers]:
        """The partitions that each vertex produces."""
        return inverted([(producer,) for producer in self.producer_of], len(self.vertices))

    @cached_property
    def group_partitions(self) -> Sequence[Numbers]:
        return [[self.partition_position[name] for name in group.partitions] for group in self.groups]

    @cached_property
    def group_producers(self) -> Sequence[Numbers]:
        """The vertices that produce the partitions of each group, each vertex once."""
        return [
            list(dict.fromkeys(self.producer_of[number] for number in partitions))
            for partitions in self.group_partitions
        ]

    @cached_property
    def group_consumers(self) -> Sequence[Numbers]:
        return [[self.position[name] for name in group.consumers] for group in self.groups]

    @cached_property
    def groups_reading(self) -> Sequence[Numbers]:
        """The groups that each partition is read in."""
        return inverted(self.group_partitions, len(self.partitions))

    def vertex(self, name: str) -> Vertex:
        """The vertex called ``name``, or UnknownName."""
        return self.vertices[self.vertex_number(name)]

    def vertex_number(self, name: str) -> int:
        """The number of the vertex called ``name``, or UnknownName."""
        if name not in self.position:
            raise unknown("vertex", name, self.position)
        return self.position[name]

    def partition(self, name: str) -> ResultPartition:
        """The result partition called ``name``, or UnknownName."""
        return self.partitions[self.partition_number(name)]

    def partition_number(self, name: str) -> int:
        """The number of the result partition called ``name``, or UnknownName."""
        if name not in self.partition_position:
            raise unknown("partition", name, self.partition_position)
        return self.partition_position[name]


def inverted(lists: Sequence[Iterable[int]], size: int) -> Sequence[list[int]]:
    """The places of the lists that hold a number, for every number below ``size``."""
    places: list[list[int]] = [[] for _ in range(size)]
    for place, numbers in enumerate(lists):
        for number in numbers:
            places[number].append(place)
    return places


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not in the graph, with the first few that are."""
    names = tuple(known)
    rest = (f"and {len(names) - SHOWN_NAMES} more",) if len(names) > SHOWN_NAMES else ()
    return UnknownName(kind, name, names[:SHOWN_NAMES] + rest)
