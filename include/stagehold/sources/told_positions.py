"""What intervals took of an incremental source, as the chronicle of their lake says: for a sandbox, which reads what
production's intervals took, and opens no ledger but its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

from stagehold.lake.chronicle import AT_ONCE, TornFile, chronicle_sizes, read_files
from stagehold.lake.files import files_at
from stagehold.model.records import Cell, TakenPosition
from stagehold.sources.log_positions import PublishedPosition


def told_positions(lake_uri: str, pipeline: str, stage_id: str) -> Mapping[str, PublishedPosition]:
    """What each interval took last, by interval.

    Files of the chronicle are read once in a process, since they never change. What a torn one says of an interval
    that published something is in its tables' logs as well.
    """
    while True:
        paths = sorted(chronicle_sizes(files_at(lake_uri)))
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                told = list(pool.map(partial(_positions_in, lake_uri), paths))
        except FileNotFoundError:
            continue  # it is compacted now
        taken = (one for some in told for one in some)
        own = [one for one in taken if one.cell == Cell(pipeline, stage_id, one.cell.interval)]
        return {one.cell.interval: PublishedPosition(one.run_id, one.position) for one in own}


@cache
def _positions_in(lake_uri: str, path: str) -> tuple[TakenPosition, ...]:
    said = read_files(files_at(lake_uri), [path])[path]
    return () if isinstance(said, TornFile) else tuple(fact for fact in said if isinstance(fact, TakenPosition))
