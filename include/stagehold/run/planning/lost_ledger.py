"""Keeps a run from beginning from scratch because a ledger was lost, or because records are under another id than a
stage has now: the user is told, and can repair that first.
"""

from __future__ import annotations

from collections.abc import Collection

from stagehold.errors import LedgerLost, RecordsUnderName
from stagehold.lake.commit.tokens import newest_epoch, tokens_of
from stagehold.lake.store.location import table_location
from stagehold.ledger.leases import region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import is_incremental
from stagehold.spec.pipeline import Stage


def refuse_lost_ledger(
    request: RunRequest, ledger: Ledger, settings: Settings, *, is_known: bool | None = None
) -> None:
    """Refuse an interval that the tables know and the ledger does not. An attempt takes its lease before it writes to a
    table. So if the ledger knows no lease of the interval's regions, no log of their tables may know an attempt; only
    then the logs are read.

    :param is_known: whether anything is on record of the interval or its leases, if somebody has looked.
    :raises LedgerLost: a log knows an attempt.
    :raises RecordsUnderName: a stage is called otherwise now, and the ledger knows it by what it was called.
    """
    pipeline, interval = request.pipeline, request.interval
    for stage in pipeline.stages:
        for past in stage.ids[1:]:
            _refuse_records_under_name(stage, past, request, ledger)
    if _is_known(request, ledger) if is_known is None else is_known:
        return
    for stage in pipeline.stages:
        if stage.output.may_have_table:
            place = table_location(settings.lake_uri, pipeline.name, stage, interval)
            if newest_epoch(tokens_of(place.uri), place.cell):
                raise LedgerLost(ledger.name, pipeline.name, interval, place.uri)


def _is_known(request: RunRequest, ledger: Ledger) -> bool:
    pipeline, interval = request.pipeline, request.interval
    leases = [region_lease(pipeline.name, interval, region.name) for region in stage_regions(pipeline)]
    return ledger.partitions.are_known(pipeline.name, interval) or bool(ledger.leases.known(leases))


def _refuse_records_under_name(stage: Stage, past: str, request: RunRequest, ledger: Ledger) -> None:
    """Refuse a stage whose records are under another of its names. For state, which goes on from one interval to the
    next, the records of all intervals count. Otherwise those of the interval count that would be computed again, unless
    it begins with a snapshot, which knows stages by their names, too.
    """
    if any(past == known.id for known in request.pipeline.stages):
        return
    pipeline, restore = request.pipeline.name, request.restore
    if restore is not None and restore.as_recorded:
        return
    left = _intervals(pipeline, past, ledger) - _intervals(pipeline, stage.id, ledger)
    if not (is_incremental(stage) or stage.state):
        left &= frozenset() if restore is not None and restore.snapshot else {request.interval}
    if left:
        others = [name for name in stage.was if name != past]
        raise RecordsUnderName(stage.name, stage.id, (*others, past), sorted(left), _again(stage))


def _intervals(pipeline: str, stage_id: str, ledger: Ledger) -> frozenset[str]:
    taken: Collection[str] = ledger.positions.taken(pipeline, stage_id)
    return frozenset((*ledger.partitions.intervals_of(pipeline, stage_id), *taken))


def _again(stage: Stage) -> str:
    if is_incremental(stage):
        return "take all of its source once more, and publish those rows twice"
    return "begin without the state that they kept" if stage.state else "be computed again"
