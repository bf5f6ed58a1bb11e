"""Regions: what starts, fails and restarts together, and what is computed along with a stage.

An output that must be consumed while it is produced glues producer and reader into one region, and a co-location its
stages; a blocking output inside a region changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagehold.errors import RegionCycle
from stagehold.model.graph import fused, topological_order
from stagehold.model.partition_set import Share
from stagehold.plan.split.shares import region_shares
from stagehold.spec.pipeline import Exchange, Pipeline, Stage


@dataclass(frozen=True)
class Region:
    """Stages fused by pipelined outputs or co-location, in the pipeline's order;
    ``upstream`` names the regions it reads from.
    """

    name: str
    stages: tuple[str, ...]
    upstream: tuple[str, ...]


def stage_regions(pipeline: Pipeline) -> tuple[Region, ...]:
    """The regions of a pipeline in topological order, their first stages' order deciding between equals.

    Regions that wait for each other are refused and not merged: one task cannot start before another that needs it.
    """
    exchanges = _exchanges(pipeline)
    glued = (
        (producer, reader)
        for producer, reader in exchanges
        if pipeline.stages[producer].output.type.consumed_while_produced
    )
    components = fused(glued, [stage.co_location for stage in pipeline.stages])
    return _ordered(pipeline, components, _region_edges(components, exchanges))


def region_parts(pipeline: Pipeline) -> tuple[tuple[Region, Share | None], ...]:
    """What each task of a pipeline works on, producers before their readers."""
    return tuple((region, share) for region in stage_regions(pipeline) for share in region_shares(pipeline, region))


def sources_within(stage: Stage, pipeline: Pipeline) -> tuple[Stage, ...]:
    """The source stages whose rows go into a stage's output without being stored before:
    itself, or those that are fused into it, in whatever form they are computed.
    """
    if stage.source is not None:
        return (stage,)
    along = (pipeline.stage(edge.stage) for edge in stage.inputs if not pipeline.stage(edge.stage).output.type.stored)
    found = {source.name: source for producer in along for source in sources_within(producer, pipeline)}
    return tuple(found.values())


def stored_with(source: Stage, pipeline: Pipeline) -> tuple[Stage, ...]:
    """The stages whose commits hold what was read of a source stage first."""
    return tuple(
        stage for stage in pipeline.stages if stage.output.type.stored and source in sources_within(stage, pipeline)
    )


def is_divisible(stage: Stage, pipeline: Pipeline) -> bool:
    """Whether some partitions of a stage cost just their share: all that is computed along with it is read forward."""
    along = [
        (pipeline.stage(edge.stage), edge.exchange)
        for edge in stage.inputs
        if not pipeline.stage(edge.stage).output.stored
    ]
    return all(exchange is Exchange.FORWARD and is_divisible(producer, pipeline) for producer, exchange in along)


def scattered_into(stage: Stage, pipeline: Pipeline) -> frozenset[str]:
    """Stages that are computed along with a stage, and whose rows go to several of its partitions: if they come out
    different when some of these are computed again, rows could be lost or there twice.
    """
    return frozenset(_scattered(stage, pipeline)) if stage.partitions > 1 else frozenset()


def _scattered(stage: Stage, pipeline: Pipeline, *, by_now: bool = False) -> Iterator[str]:
    for edge in stage.inputs:
        producer = pipeline.stage(edge.stage)
        if not producer.output.stored:
            scattered = by_now or edge.exchange is not Exchange.FORWARD
            if scattered:
                yield producer.name
            yield from _scattered(producer, pipeline, by_now=scattered)


def _exchanges(pipeline: Pipeline) -> tuple[tuple[int, int], ...]:
    position = {stage.name: index for index, stage in enumerate(pipeline.stages)}
    return tuple((position[edge.stage], position[stage.name]) for stage in pipeline.stages for edge in stage.inputs)


def _region_edges(
    components: Sequence[Sequence[int]], exchanges: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    region_of = {stage: region for region, stages in enumerate(components) for stage in stages}
    edges = ((region_of[producer], region_of[reader]) for producer, reader in exchanges)
    return tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))


def _ordered(
    pipeline: Pipeline, components: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]
) -> tuple[Region, ...]:
    stages = [tuple(pipeline.stages[index].name for index in component) for component in components]
    names = ["__".join(members) for members in stages]
    order = topological_order(
        [[reader for producer, reader in edges if producer == region] for region in range(len(components))]
    )
    if len(order) < len(components):
        raise RegionCycle(pipeline.name, [names[region] for region in range(len(components)) if region not in order])
    return tuple(
        Region(names[region], stages[region], tuple(names[producer] for producer, reader in edges if reader == region))
        for region in order
    )
