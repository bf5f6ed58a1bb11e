"""How many slots of the Spark server each region's task takes,
and whether the schedule mode can run with those there are.

A slot holds one partition of every stage that runs together, so a region needs as many slots as the widest of its
stages has partitions in it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stagehold.errors import ScheduleRefused
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.build import pipeline_topology
from stagehold.topology.partition_regions import PartitionRegions, partition_regions
from stagehold.topology.topology import Topology

NO_LIMIT = sys.maxsize


def task_slots(pipeline: Pipeline, slots: int) -> Mapping[str, int]:
    """Slots that a task of each region takes while it runs: as many as its widest part that must run at once.

    A task works its partitions off in waves, so what needs no other partition to run beside it needs one slot. Tasks of
    an eager pipeline all start at once and those that wait keep their slots, so that all of them together must fit.

    :param slots: how many there are.
    :raises ScheduleRefused: the mode cannot run this pipeline with them.
    """
    regions = partition_regions(pipeline_topology(pipeline))
    refuse_unless_it_fits(pipeline.schedule_mode, regions, slots=slots)
    needed = {region.name: _widest(region, regions) for region in stage_regions(pipeline)}
    if pipeline.schedule_mode is ScheduleMode.EAGER:
        _refuse_if_tasks_do_not_fit(pipeline, needed, slots)
    return needed


def _widest(region: Region, regions: PartitionRegions) -> int:
    topology = regions.topology
    parts = (part for part in regions.regions if topology.vertex(part[0]).stage in region.stages)
    return max(slots_needed(topology, part) for part in parts)


def _refuse_if_tasks_do_not_fit(pipeline: Pipeline, needed: Mapping[str, int], slots: int) -> None:
    tasks = {region.name: len(region_shares(pipeline, region)) for region in stage_regions(pipeline)}
    total = sum(needed[name] * count for name, count in tasks.items())
    if total > slots:
        raise ScheduleRefused(
            mode=ScheduleMode.EAGER,
            reason=f"its {sum(tasks.values())} tasks start at once and take {total} slots, but there are {slots}",
            remedy=f"Set STAGEHOLD_SPARK_SLOTS to {total}, or schedule_mode: {ScheduleMode.LAZY_FROM_SOURCES}.",
        )


def slots_needed(topology: Topology, vertices: Iterable[str]) -> int:
    """How many slots must be free at once for ``vertices`` to run together."""
    return max(Counter(topology.vertex(vertex).stage for vertex in vertices).values(), default=0)


def refuse_unless_it_fits(mode: ScheduleMode, regions: PartitionRegions, *, slots: int) -> None:
    """Whether a mode can run this graph with so many slots.

    eager: everything runs at once, so the whole graph must fit.
    lazy_from_sources: a region starts when all its slots are free, so each region must fit.
    lazy_from_sources_with_batch_slot_request: slots are handed out one by one, so each region must run in a single one;
    then any number of slots is enough.

    :raises ScheduleRefused: it cannot.
    """
    if slots < 1:
        raise ScheduleRefused(mode=mode, reason=f"there are {slots} slots", remedy="Give it at least 1 slot.")
    if mode is ScheduleMode.EAGER:
        return _refuse_if_graph_does_not_fit(regions.topology, slots)
    for region in regions.regions:
        if mode is ScheduleMode.LAZY_FROM_SOURCES:
            _refuse_if_region_does_not_fit(regions.topology, region, slots)
        else:
            _refuse_if_region_needs_more_than_a_slot(regions, region)


def _refuse_if_graph_does_not_fit(topology: Topology, slots: int) -> None:
    needed = slots_needed(topology, topology.position)
    if needed > slots:
        raise ScheduleRefused(
            mode=ScheduleMode.EAGER,
            reason=f"everything starts at once and needs {needed} slots, but there are {slots}",
            remedy=f"Give it {needed} slots, or set schedule_mode: {ScheduleMode.LAZY_FROM_SOURCES}.",
        )


def _refuse_if_region_does_not_fit(topology: Topology, region: Sequence[str], slots: int) -> None:
    needed = slots_needed(topology, region)
    if needed > slots:
        raise ScheduleRefused(
            mode=ScheduleMode.LAZY_FROM_SOURCES,
            reason=f"the region of {region[0]} starts at once and needs {needed} slots, but there are {slots}",
            remedy=f"Give it {needed} slots, or make an output inside the region blocking.",
        )


def _refuse_if_region_needs_more_than_a_slot(regions: PartitionRegions, region: Sequence[str]) -> None:
    if slots_needed(regions.topology, region) == 1:
        return
    raise ScheduleRefused(
        mode=ScheduleMode.LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST,
        reason=f"the region of {region[0]} must run slot by slot, but {_shuffle(regions, region)}",
        remedy=f"Make that output blocking, or set schedule_mode: {ScheduleMode.LAZY_FROM_SOURCES}.",
    )


def _shuffle(regions: PartitionRegions, region: Sequence[str]) -> str:
    """The exchange that holds several partitions of a stage together."""
    for number in regions.groups_read[regions.region_with(region[0])]:
        group = regions.topology.groups[number]
        if group.type.consumed_while_produced and max(len(group.partitions), len(group.consumers)) > 1:
            return f"the pipelined output {group.partitions[0]} is shuffled to {group.consumers[0]}"
    return "several partitions of one of its stages are located together or wait for each other"
