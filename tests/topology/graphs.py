"""Small graphs for tests: written as text, or drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from stagehold.spec.pipeline import OutputType
from stagehold.topology.build import DeclaredPartition, topology_of
from stagehold.topology.topology import Topology, Vertex

TYPES = {
    "-": OutputType.BLOCKING,
    "=": OutputType.BLOCKING_PERSISTENT,
    ">": OutputType.PIPELINED,
    "~": OutputType.PIPELINED_BOUNDED,
}


def graph(text: str, together: dict[str, str] | None = None) -> Topology:
    """Exchanges as "ab-cd": c and d each read what a and b each produce; the sign tells the type, a lone "e" is a
    vertex.

    The partition that a producer leaves for such an exchange is called after its text, "a-cd".
    """
    vertices: dict[str, None] = {}
    partitions: list[DeclaredPartition] = []
    for exchange in text.split():
        sign = next((sign for sign in TYPES if sign in exchange), None)
        vertices.update(dict.fromkeys(letter for letter in exchange if letter != sign))
        if sign is not None:
            producers, consumers = exchange.split(sign)
            partitions += [
                DeclaredPartition(f"{name}{sign}{consumers}", name, TYPES[sign], tuple(consumers)) for name in producers
            ]
    place = {vertex: group for group, members in (together or {}).items() for vertex in members}
    return topology_of([Vertex(name, name, co_location=place.get(name)) for name in vertices], partitions)


def edges(topology: Topology) -> list[tuple[str, str, OutputType]]:
    """Every read as producer, consumer and type."""
    producer = {partition.id: partition.producer for partition in topology.partitions}
    return [
        (producer[name], consumer, group.type)
        for group in topology.groups
        for name in group.partitions
        for consumer in group.consumers
    ]


@st.composite
def _graphs(draw: st.DrawFn, types: tuple[OutputType, ...] = tuple(OutputType)) -> Topology:
    size = draw(st.integers(1, 9))
    names = [f"v{index}" for index in range(size)]
    partitions = []
    for index, name in enumerate(names):
        for number in range(draw(st.integers(0, 2))):
            readers = (
                draw(st.lists(st.sampled_from(names[index + 1 :]), max_size=3, unique=True)) if index + 1 < size else []
            )
            partitions.append(DeclaredPartition(f"{name}.{number}", name, draw(st.sampled_from(types)), tuple(readers)))
    return topology_of([Vertex(name, name) for name in names], partitions)


GRAPHS = _graphs()
