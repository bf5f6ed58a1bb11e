"""Which tasks of a pipeline wait for which: the graph that its tasks are scheduled by, where each is one vertex."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stagehold.model.checkpoint_records import part_name
from stagehold.model.graph import topological_order
from stagehold.model.partition_set import Share, overlap
from stagehold.plan.split.regions import Region, region_parts, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.spec.pipeline import Exchange, OutputType, Pipeline
from stagehold.topology.build import DeclaredPartition, topology_of
from stagehold.topology.topology import Topology, Vertex


def task_topology(pipeline: Pipeline) -> Topology:
    """A vertex for each region, or share of one, with one stored output. A share that reads `forward` reads the shares
    that its own partitions are in; every other exchange reads all of them.
    """
    parts = region_parts(pipeline)
    outputs = [
        DeclaredPartition(name, name, OutputType.BLOCKING, tuple(_readers(part, parts, pipeline)))
        for part in parts
        for name in (part_name(part[0].name, part[1]),)
    ]
    return topology_of([Vertex(output.id, output.id) for output in outputs], outputs, file=pipeline.file)


Part = tuple[Region, Share | None]


def _readers(part: Part, parts: tuple[Part, ...], pipeline: Pipeline) -> Iterator[str]:
    region, share = part
    for reader, read_in in parts:
        exchanges = _exchanges(region, reader, pipeline)
        if exchanges - {Exchange.FORWARD} or (exchanges and overlap(share, read_in)):
            yield part_name(reader.name, read_in)


def _exchanges(producer: Region, reader: Region, pipeline: Pipeline) -> set[Exchange]:
    if producer.name not in reader.upstream:
        return set()
    edges = (edge for stage in reader.stages for edge in pipeline.stage(stage).inputs)
    return {edge.exchange for edge in edges if edge.stage in producer.stages}


def share_chains(pipeline: Pipeline, among: Collection[str]) -> tuple[tuple[Region, ...], ...]:
    """The regions of these names, those in one chain that are cut into the same shares and of which each share reads
    its own of the others; all others by themselves. No chain waits for itself by way of a region outside of it.
    """
    regions = [region for region in stage_regions(pipeline) if region.name in among]
    chains: list[tuple[Region, ...]] = [(region,) for region in regions]
    for reader in regions:
        for producer in (region for region in regions if _share_by_share(region, reader, pipeline)):
            first, second = (next(chain for chain in chains if one in chain) for one in (producer, reader))
            joined = [chain for chain in chains if chain not in (first, second)]
            joined.append(tuple(region for region in regions if region in (*first, *second)))
            if _have_an_order(joined):
                chains = joined
    return tuple(sorted(chains, key=lambda chain: regions.index(chain[0])))


def _share_by_share(producer: Region, reader: Region, pipeline: Pipeline) -> bool:
    shares = region_shares(pipeline, producer)
    same = None not in shares and shares == region_shares(pipeline, reader)
    return same and _exchanges(producer, reader, pipeline) == {Exchange.FORWARD}


def _have_an_order(chains: Sequence[tuple[Region, ...]]) -> bool:
    place = {region.name: number for number, chain in enumerate(chains) for region in chain}
    readers: list[set[int]] = [set() for _ in chains]
    for number, chain in enumerate(chains):
        for name in (name for region in chain for name in region.upstream if place.get(name, number) != number):
            readers[place[name]].add(number)
    return len(topological_order([sorted(reading) for reading in readers])) == len(chains)
