"""What intervals took of an incremental source, as the chronicle of a lake says: for who does not open its ledger. A
sandbox reads what production's intervals took; a savepoint takes along what others had taken when it was made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from stagehold.lake.chronicle.told import facts_told
from stagehold.model.records import Cell, TakenPosition
from stagehold.sources.log_positions import PublishedPosition


def told_positions(
    lake_uri: str, pipeline: str, stage_id: str, until: datetime | None = None
) -> Mapping[str, PublishedPosition]:
    """What each interval had taken last, by interval. If a file is torn, the tables' logs still tell what was
    published.
    """
    taken = positions_taken(lake_uri, pipeline, {stage_id}, until)
    return {one.cell.interval: PublishedPosition(one.run_id, one.position) for one in taken}


def positions_taken(
    lake_uri: str, pipeline: str, stage_ids: Collection[str], until: datetime | None
) -> Collection[TakenPosition]:
    """The last of each cell, of these stages."""
    newest: dict[Cell, TakenPosition] = {}
    for one in facts_told(lake_uri, TakenPosition):
        is_theirs = one.cell.pipeline == pipeline and one.cell.stage in stage_ids
        if is_theirs and (until is None or one.recorded_at <= until):
            newest[one.cell] = one
    return newest.values()
