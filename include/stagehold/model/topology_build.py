"""Makes topologies, from a pipeline or from vertices and partitions given directly, and refuses impossible ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stagehold.errors import InvalidTopology, TopologyProblem
from stagehold.model.exchange_groups import PATTERNS
from stagehold.model.graph import Successors, strong_components, topological_order
from stagehold.model.output_types import properties_of
from stagehold.model.spec import Exchange, OutputType, Pipeline, Stage
from stagehold.model.topology import ExchangeGroup, ResultPartition, Topology, Vertex


@dataclass(frozen=True)
class DeclaredPartition:
    """A result partition with the vertices that read it, as a graph given directly names them."""

    id: str
    producer: str
    type: OutputType
    consumers: tuple[str, ...] = ()


def partition_name(stage: str, index: int) -> str:
    """The id of a stage's partition: of the vertex that computes it and of what that produces."""
    return f"{stage}:{index}"


def pipeline_topology(pipeline: Pipeline) -> Topology:
    """The vertices of a pipeline's stages, by stage and index, and their reads."""
    vertices = tuple(Vertex(name, stage.name, index) for stage in pipeline.stages for index, name in enumerate(_names(stage)))
    partitions = tuple(ResultPartition(name, name, stage.output.type) for stage in pipeline.stages for name in _names(stage))
    return _checked(pipeline.file, Topology(vertices, partitions, tuple(_pipeline_groups(pipeline))))


def _names(stage: Stage) -> tuple[str, ...]:
    return tuple(partition_name(stage.name, index) for index in range(stage.partitions))


def _pipeline_groups(pipeline: Pipeline) -> Iterator[ExchangeGroup]:
    for reader in pipeline.stages:
        for edge in reader.inputs:
            yield from _stage_groups(pipeline.stage(edge.stage), reader, edge.exchange)


def _stage_groups(producer: Stage, reader: Stage, exchange: Exchange) -> Iterator[ExchangeGroup]:
    partitions, consumers = _names(producer), _names(reader)
    for produced, consumed in PATTERNS[exchange](len(partitions), len(consumers)):
        yield ExchangeGroup(partitions[produced.start : produced.stop], consumers[consumed.start : consumed.stop], producer.output.type)


def topology_of(vertices: Sequence[Vertex], partitions: Sequence[DeclaredPartition], *, file: str = "topology") -> Topology:
    """The topology of a graph given directly; ``file`` is named in what is wrong with it.

    A cycle of pipelined exchanges is refused, because its vertices would have to consume what they have yet to produce. One
    that holds a blocking exchange is not: it only makes its regions one.
    """
    problems = (*_vertex_problems(vertices), *_partition_problems({vertex.id for vertex in vertices}, partitions))
    if problems:
        raise InvalidTopology(file, problems)
    produced = tuple(ResultPartition(partition.id, partition.producer, partition.type) for partition in partitions)
    return _checked(file, Topology(tuple(vertices), produced, _shared_groups(partitions)))


def _vertex_problems(vertices: Sequence[Vertex]) -> Iterator[TopologyProblem]:
    for name in _repeated(vertex.id for vertex in vertices):
        yield TopologyProblem("vertices", f"{name!r} more than once", "each vertex once")


def _partition_problems(vertices: set[str], partitions: Sequence[DeclaredPartition]) -> Iterator[TopologyProblem]:
    for name in _repeated(partition.id for partition in partitions):
        yield TopologyProblem("partitions", f"{name!r} more than once", "each partition once, with one producer")
    for index, partition in enumerate(partitions):
        if partition.producer not in vertices:
            yield TopologyProblem(f"partitions[{index}].producer", repr(partition.producer), "the id of a vertex")
        for place, consumer in enumerate(partition.consumers):
            if consumer not in vertices:
                yield TopologyProblem(f"partitions[{index}].consumers[{place}]", repr(consumer), "the id of a vertex")


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _shared_groups(partitions: Sequence[DeclaredPartition]) -> tuple[ExchangeGroup, ...]:
    """Partitions of one type with the same consumers share a group, so a given all-to-all exchange is one group too."""
    shared: dict[tuple[OutputType, tuple[str, ...]], list[str]] = {}
    for partition in partitions:
        if partition.consumers:
            shared.setdefault((partition.type, tuple(dict.fromkeys(partition.consumers))), []).append(partition.id)
    return tuple(ExchangeGroup(tuple(names), consumers, kind) for (kind, consumers), names in shared.items())


def _checked(file: str, topology: Topology) -> Topology:
    successors = topology.flow()
    for number, group in enumerate(topology.groups, start=len(topology.vertices)):
        if not properties_of(group.type).consumed_while_produced:
            successors[number] = []
    if len(topological_order(successors)) < len(successors):
        raise InvalidTopology(file, [_cycle_problem(topology, successors)])
    return topology


def _cycle_problem(topology: Topology, successors: Successors) -> TopologyProblem:
    cycle = next(component for component in strong_components(successors) if len(component) > 1)
    names = [topology.vertices[node].id for node in cycle if node < len(topology.vertices)]
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return TopologyProblem("partitions", f"a cycle of pipelined exchanges through {shown}", "a blocking exchange in every cycle")
