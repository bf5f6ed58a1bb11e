"""What intervals took of an incremental source, as the chronicle of their lake says: for a sandbox, which reads what
production's intervals took, and opens no ledger but its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagehold.lake.told import facts_told
from stagehold.model.records import Cell, TakenPosition
from stagehold.sources.log_positions import PublishedPosition


def told_positions(lake_uri: str, pipeline: str, stage_id: str) -> Mapping[str, PublishedPosition]:
    """What each interval took last, by interval. If a file is torn, the tables' logs still tell what was published."""
    taken = facts_told(lake_uri, TakenPosition)
    own = [one for one in taken if one.cell == Cell(pipeline, stage_id, one.cell.interval)]
    return {one.cell.interval: PublishedPosition(one.run_id, one.position) for one in own}
