"""Which tasks of a pipeline wait for which: the graph that its tasks are scheduled by, where each is one vertex."""

from __future__ import annotations

from collections.abc import Iterator

from stagehold.model.partition_set import Share, overlap
from stagehold.plan.split.regions import Region, region_parts
from stagehold.plan.split.shares import part_name
from stagehold.spec.pipeline import Exchange, OutputType, Pipeline
from stagehold.topology.build import DeclaredPartition, topology_of
from stagehold.topology.topology import Topology, Vertex


def task_topology(pipeline: Pipeline) -> Topology:
    """A vertex for each region, or share of one, with one stored output. A share that reads `forward` reads the shares
    that its own partitions are in; every other exchange reads all of them.
    """
    parts = region_parts(pipeline)
    outputs = [
        DeclaredPartition(
            part_name(*part), part_name(*part), OutputType.BLOCKING, tuple(_readers(part, parts, pipeline))
        )
        for part in parts
    ]
    return topology_of([Vertex(output.id, output.id) for output in outputs], outputs, file=pipeline.file)


Part = tuple[Region, Share | None]


def _readers(part: Part, parts: tuple[Part, ...], pipeline: Pipeline) -> Iterator[str]:
    region, share = part
    for reader, read_in in parts:
        exchanges = _exchanges(region, reader, pipeline)
        if exchanges - {Exchange.FORWARD} or (exchanges and overlap(share, read_in)):
            yield part_name(reader, read_in)


def _exchanges(producer: Region, reader: Region, pipeline: Pipeline) -> set[Exchange]:
    if producer.name not in reader.upstream:
        return set()
    edges = (edge for stage in reader.stages for edge in pipeline.stage(stage).inputs)
    return {edge.exchange for edge in edges if edge.stage in producer.stages}
