"""Makes topologies, from a pipeline or from vertices and partitions given directly, and refuses impossible ones.

Which consumer reads which partition, by index, are Flink's two distribution patterns. A block is a range of producers
and a range of consumers, all of which read all of those producers' partitions. Either pattern is a list of blocks that
share no producer and no consumer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagehold.errors import InvalidTopology, SpecProblem
from stagehold.model.graph import strong_components
from stagehold.spec.pipeline import Exchange, OutputType, Pipeline
from stagehold.topology.topology import ExchangeGroup, ResultPartition, Topology, Vertex


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
    """The vertices of a pipeline's stages, by stage and index, and their reads;
    of co-located stages equal indices go together.
    """
    names = {
        stage.name: tuple(partition_name(stage.name, index) for index in range(stage.partitions))
        for stage in pipeline.stages
    }
    vertices = tuple(
        Vertex(name, stage.name, index, stage.co_location and f"{stage.co_location}:{index}")
        for stage in pipeline.stages
        for index, name in enumerate(names[stage.name])
    )
    partitions = tuple(
        ResultPartition(name, name, stage.output.type) for stage in pipeline.stages for name in names[stage.name]
    )
    return _checked(pipeline.file, Topology(vertices, partitions, tuple(_pipeline_groups(pipeline, names))))


def _pipeline_groups(pipeline: Pipeline, names: Mapping[str, tuple[str, ...]]) -> Iterator[ExchangeGroup]:
    """The groups of a pipeline's topology. Ids are the very objects of the vertices, not equal texts: a graph of
    100,000 looks each of them up many times.
    """
    for reader in pipeline.stages:
        for edge in reader.inputs:
            partitions, consumers, kind = names[edge.stage], names[reader.name], pipeline.stage(edge.stage).output.type
            for produced, consumed in PATTERNS[edge.exchange](len(partitions), len(consumers)):
                yield ExchangeGroup(
                    partitions[produced.start : produced.stop], consumers[consumed.start : consumed.stop], kind
                )


def topology_of(
    vertices: Sequence[Vertex], partitions: Sequence[DeclaredPartition], *, file: str = "topology"
) -> Topology:
    """The topology of a graph given directly; ``file`` is named in what is wrong with it.

    A cycle of pipelined exchanges is refused, because its vertices would have to consume what they have yet to produce.
    One that holds a blocking exchange is not: it only makes its regions one.
    """
    problems = (*_vertex_problems(vertices), *_partition_problems({vertex.id for vertex in vertices}, partitions))
    if problems:
        raise InvalidTopology(file, problems)
    produced = tuple(ResultPartition(partition.id, partition.producer, partition.type) for partition in partitions)
    return _checked(file, Topology(tuple(vertices), produced, _shared_groups(partitions)))


def _vertex_problems(vertices: Sequence[Vertex]) -> Iterator[SpecProblem]:
    for name in _repeated(vertex.id for vertex in vertices):
        yield SpecProblem(0, "vertices", f"{name!r} more than once", "each vertex once")


def _partition_problems(vertices: set[str], partitions: Sequence[DeclaredPartition]) -> Iterator[SpecProblem]:
    for name in _repeated(partition.id for partition in partitions):
        yield SpecProblem(0, "partitions", f"{name!r} more than once", "each partition once, with one producer")
    for index, partition in enumerate(partitions):
        if partition.producer not in vertices:
            yield SpecProblem(0, f"partitions[{index}].producer", repr(partition.producer), "the id of a vertex")
        for place, consumer in enumerate(partition.consumers):
            if consumer not in vertices:
                yield SpecProblem(0, f"partitions[{index}].consumers[{place}]", repr(consumer), "the id of a vertex")


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
    streams = [number for number, group in enumerate(topology.groups) if group.type.consumed_while_produced]
    vertices = dict.fromkeys(
        vertex for group in streams for vertex in (*topology.group_producers[group], *topology.group_consumers[group])
    )
    node_of = {vertex: node for node, vertex in enumerate(vertices)}
    successors: list[list[int]] = [[] for _ in vertices]
    for group in streams:
        for producer in topology.group_producers[group]:
            successors[node_of[producer]].append(len(successors))
        successors.append([node_of[consumer] for consumer in topology.group_consumers[group]])
    cycle = next((nodes for nodes in strong_components(successors) if len(nodes) > 1), ())
    if cycle:
        raise InvalidTopology(
            file, [_cycle_problem([topology.vertices[vertex].id for vertex, node in node_of.items() if node in cycle])]
        )
    return topology


def _cycle_problem(names: Sequence[str]) -> SpecProblem:
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return SpecProblem(
        0, "partitions", f"a cycle of pipelined exchanges through {shown}", "a blocking exchange in every cycle"
    )


Block = tuple[range, range]


def all_to_all(producers: int, consumers: int) -> Iterator[Block]:
    """Every consumer reads every partition."""
    yield range(producers), range(consumers)


def pointwise(producers: int, consumers: int) -> Iterator[Block]:
    """Neighbouring indices meet; equal counts give index i to index i.

    With at least as many producers, consumer k reads partitions [floor(k*S/T), floor((k+1)*S/T)). With fewer, producer
    p feeds consumers [ceil(p*T/S), ceil((p+1)*T/S)).
    """
    if producers >= consumers:
        for consumer in range(consumers):
            yield (
                range(consumer * producers // consumers, (consumer + 1) * producers // consumers),
                range(consumer, consumer + 1),
            )
    else:
        for producer in range(producers):
            yield (
                range(producer, producer + 1),
                range(_ceil(producer * consumers, producers), _ceil((producer + 1) * consumers, producers)),
            )


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


# A keyed reader takes some rows of every partition; broadcast and gather take all of them.
PATTERNS: Mapping[Exchange, Callable[[int, int], Iterator[Block]]] = {
    Exchange.FORWARD: pointwise,
    Exchange.KEYED: all_to_all,
    Exchange.BROADCAST: all_to_all,
    Exchange.GATHER: all_to_all,
}
