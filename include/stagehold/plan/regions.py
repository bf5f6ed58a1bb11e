"""Regions: what starts, fails and restarts together.

An output that must be consumed while it is produced glues producer and reader into one region, and a co-location its
stages; a blocking output inside a region changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stagehold.errors import RegionCycle
from stagehold.model.graph import UnionFind, topological_order
from stagehold.model.output_types import properties_of
from stagehold.model.spec import Pipeline


@dataclass(frozen=True)
class Region:
    """Stages fused by pipelined outputs or co-location, in the pipeline's order; ``upstream`` names the regions it reads from."""

    name: str
    stages: tuple[str, ...]
    upstream: tuple[str, ...]


def stage_regions(pipeline: Pipeline) -> tuple[Region, ...]:
    """The regions of a pipeline in topological order, their first stages' order deciding between equals.

    Regions that wait for each other are refused and not merged: one task cannot start before another that needs it.
    """
    exchanges = _exchanges(pipeline)
    joined = UnionFind(len(pipeline.stages))
    for producer, reader in exchanges:
        if properties_of(pipeline.stages[producer].output.type).consumed_while_produced:
            joined.join((producer, reader))
    for together in _co_located(pipeline):
        joined.join(together)
    components = joined.components()
    return _ordered(pipeline, components, _region_edges(components, exchanges))


def _co_located(pipeline: Pipeline) -> Iterable[Sequence[int]]:
    groups: dict[str, list[int]] = {}
    for index, stage in enumerate(pipeline.stages):
        if stage.co_location is not None:
            groups.setdefault(stage.co_location, []).append(index)
    return groups.values()


def _exchanges(pipeline: Pipeline) -> tuple[tuple[int, int], ...]:
    position = {stage.name: index for index, stage in enumerate(pipeline.stages)}
    return tuple((position[edge.stage], position[stage.name]) for stage in pipeline.stages for edge in stage.inputs)


def _region_edges(components: Sequence[Sequence[int]], exchanges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    region_of = {stage: region for region, stages in enumerate(components) for stage in stages}
    edges = ((region_of[producer], region_of[reader]) for producer, reader in exchanges)
    return tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))


def _ordered(pipeline: Pipeline, components: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]) -> tuple[Region, ...]:
    stages = [tuple(pipeline.stages[index].name for index in component) for component in components]
    names = ["__".join(members) for members in stages]
    order = topological_order([[reader for producer, reader in edges if producer == region] for region in range(len(components))])
    if len(order) < len(components):
        raise RegionCycle(pipeline.name, [names[region] for region in range(len(components)) if region not in order])
    return tuple(
        Region(names[region], stages[region], tuple(names[producer] for producer, reader in edges if reader == region)) for region in order
    )
