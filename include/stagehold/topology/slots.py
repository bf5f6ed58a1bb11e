"""Schedule modes over a number of slots: what a mode cannot run with them.

A slot holds one partition of every stage that runs together, so a region needs as many slots as the widest of its
stages has partitions in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stagehold.errors import ScheduleRefused
from stagehold.spec.outputs import properties_of
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.partition_regions import PartitionRegions
from stagehold.topology.topology import Topology


def slots_needed(topology: Topology, vertices: Iterable[str]) -> int:
    """Slots that must be free at once for ``vertices`` to run together."""
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
        if properties_of(group.type).consumed_while_produced and max(len(group.partitions), len(group.consumers)) > 1:
            return f"the pipelined output {group.partitions[0]} is shuffled to {group.consumers[0]}"
    return "several partitions of one of its stages are located together or wait for each other"
