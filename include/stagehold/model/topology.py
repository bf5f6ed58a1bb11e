"""The graph that is planned on: vertices, the result partitions they produce, and who reads those.

A vertex computes one partition of a stage, a result partition is what it leaves behind. Reads are kept as exchange
groups, in each of which every consumer reads every partition: an all-to-all exchange is one group however wide it is,
so nothing here or in the planners costs producers times consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from stagehold.errors import UnknownName
from stagehold.model.spec import OutputType

Value = TypeVar("Value")

# A graph may have 100,000 names; an error text must stay readable.
SHOWN_NAMES = 20


@dataclass(frozen=True)
class Vertex:
    """The computation of one partition of a stage; vertices that name one ``co_location`` must be in one region."""

    id: str
    stage: str
    index: int = 0
    co_location: str | None = None


@dataclass(frozen=True)
class ResultPartition:
    """What one vertex produces."""

    id: str
    producer: str
    type: OutputType


@dataclass(frozen=True)
class ExchangeGroup:
    """Partitions of one type and their consumers: each of the consumers reads each of the partitions."""

    partitions: tuple[str, ...]
    consumers: tuple[str, ...]
    type: OutputType


@dataclass(frozen=True)
class Topology:
    """A checked graph, made by `topology_build`; every id in it resolves."""

    vertices: tuple[Vertex, ...]
    partitions: tuple[ResultPartition, ...]
    groups: tuple[ExchangeGroup, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Place of every vertex in ``vertices``."""
        return {vertex.id: index for index, vertex in enumerate(self.vertices)}

    @cached_property
    def partition_by_id(self) -> Mapping[str, ResultPartition]:
        return {partition.id: partition for partition in self.partitions}

    @cached_property
    def outputs(self) -> Mapping[str, Sequence[ResultPartition]]:
        """The partitions that each vertex produces."""
        return _listed(((partition.producer, partition) for partition in self.partitions), self.position)

    @cached_property
    def groups_reading(self) -> Mapping[str, Sequence[int]]:
        """For every partition, the numbers of the groups it is read in."""
        return _listed(((name, number) for number, group in enumerate(self.groups) for name in group.partitions), self.partition_by_id)

    @cached_property
    def groups_read_by(self) -> Mapping[str, Sequence[int]]:
        """For every vertex, the numbers of the groups it reads."""
        return _listed(((name, number) for number, group in enumerate(self.groups) for name in group.consumers), self.position)

    @cached_property
    def producers_of_group(self) -> Sequence[Sequence[str]]:
        """For every group, the vertices that produce its partitions, each once."""
        producer = {partition.id: partition.producer for partition in self.partitions}
        return [tuple(dict.fromkeys(producer[name] for name in group.partitions)) for group in self.groups]

    def vertex(self, name: str) -> Vertex:
        """The vertex called ``name``, or UnknownName."""
        if name not in self.position:
            raise unknown("vertex", name, self.position)
        return self.vertices[self.position[name]]

    def partition(self, name: str) -> ResultPartition:
        """The result partition called ``name``, or UnknownName."""
        if name not in self.partition_by_id:
            raise unknown("partition", name, self.partition_by_id)
        return self.partition_by_id[name]

    def flow(self) -> list[list[int]]:
        """Successors in the graph of data: vertices by position, then groups, since data flows through a group."""
        first_group = len(self.vertices)
        successors: list[list[int]] = [[] for _ in range(first_group + len(self.groups))]
        for number, group in enumerate(self.groups):
            for producer in self.producers_of_group[number]:
                successors[self.position[producer]].append(first_group + number)
            successors[first_group + number].extend(self.position[consumer] for consumer in group.consumers)
        return successors


def _listed(pairs: Iterable[tuple[str, Value]], names: Iterable[str]) -> Mapping[str, Sequence[Value]]:
    listed: dict[str, list[Value]] = {name: [] for name in names}
    for name, value in pairs:
        listed[name].append(value)
    return listed


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not in the graph, with the first few that are."""
    names = tuple(known)
    rest = (f"and {len(names) - SHOWN_NAMES} more",) if len(names) > SHOWN_NAMES else ()
    return UnknownName(kind, name, names[:SHOWN_NAMES] + rest)
