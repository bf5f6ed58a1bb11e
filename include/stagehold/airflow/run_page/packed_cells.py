"""The cells of a stage in little memory: as objects, 100,000 of them take more than all that a process may keep."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import compress, decompress

from pydantic import TypeAdapter

from stagehold.airflow.run_page.run_responses import PartitionCell

OF_A_PART = 1_000
FASTEST = 1  # of zlib's levels
_CELLS = TypeAdapter(tuple[PartitionCell, ...])


class PackedCells:
    """In order, in parts of which only those are unpacked that somebody looks at."""

    def __init__(self, cells: Sequence[PartitionCell]) -> None:
        starts = range(0, len(cells), OF_A_PART)
        self._parts = tuple(compress(_CELLS.dump_json(tuple(cells[one : one + OF_A_PART])), FASTEST) for one in starts)

    def between(self, first: int, last: int) -> tuple[PartitionCell, ...]:
        """Both ends included; fewer where there are no more."""
        parts = self._parts[first // OF_A_PART : last // OF_A_PART + 1]
        cells = [cell for part in parts for cell in _CELLS.validate_json(decompress(part))]
        start = first // OF_A_PART * OF_A_PART
        return tuple(cells[first - start : last + 1 - start])
