"""Nobody begins from scratch because a ledger was lost: its loss is told, and can be repaired first."""

from __future__ import annotations

from stagehold.errors import LedgerLost
from stagehold.lake.commit.log_tokens import newest_epoch, tokens_of
from stagehold.lake.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.plan.split.regions import stage_regions
from stagehold.run.attempt.task import region_lease
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings


def refuse_lost_ledger(request: RunRequest, ledger: Ledger, settings: Settings) -> None:
    """An attempt takes its lease before it writes to a table, so where the ledger knows no lease of the interval's
    regions, no log of their tables may know an attempt. The logs are looked at only then.

    :raises LedgerLost: one does.
    """
    pipeline, interval = request.pipeline, request.interval
    leases = [region_lease(pipeline.name, interval, region.name) for region in stage_regions(pipeline)]
    if ledger.leases.any_of(leases) or ledger.partitions.newest_of(pipeline.name, interval):
        return
    for stage in pipeline.stages:
        if stage.output.may_have_table:
            place = table_location(settings.lake_uri, pipeline.name, stage, interval)
            if newest_epoch(tokens_of(place.uri), place.cell):
                raise LedgerLost(ledger.name, pipeline.name, interval, place.uri)
