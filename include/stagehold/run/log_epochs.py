"""Which epochs the logs of a region's tables know. The ledger draws epochs, and may be lost; tables are not lost with it."""

from __future__ import annotations

from stagehold.lake.location import table_location
from stagehold.lake.log_tokens import newest_epoch, tokens_of
from stagehold.plan.shares import Share
from stagehold.run.region_task import RegionTask
from stagehold.settings import Settings


def newest_epoch_in_logs(task: RegionTask, settings: Settings, share: Share | None = None) -> int:
    """The highest epoch that ever fenced or committed partitions of ``share`` of the region, in whatever cut; 0 if none did."""
    stages = (task.pipeline.stage(name) for name in task.region.stages)
    places = [table_location(settings.lake_uri, task.pipeline.name, stage, task.interval) for stage in stages if stage.output.type.stored]
    return max((newest_epoch(tokens_of(place.uri), place.cell, share) for place in places), default=0)
