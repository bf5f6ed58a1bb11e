"""How many slots of the Spark server each region's task takes,
and whether the schedule mode can run with those there are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from stagehold.errors import ScheduleRefused
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.build import pipeline_topology
from stagehold.topology.partition_regions import PartitionRegions, partition_regions
from stagehold.topology.slots import refuse_unless_it_fits, slots_needed

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
