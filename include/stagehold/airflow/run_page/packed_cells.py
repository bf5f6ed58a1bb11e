"""The cells of a stage in little memory: as objects, 100,000 cells take more than a process may keep altogether."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import compress, decompress

from pydantic import TypeAdapter

from stagehold.airflow.run_page.run_responses import PartitionCell

OF_A_PART = 1_000
FASTEST = 1  # of zlib's levels
_CELLS = TypeAdapter(tuple[PartitionCell, ...])


class PackedCells:
    """Cells in their order, in parts; only the parts that somebody looks at are unpacked."""

    def __init__(self, cells: Sequence[PartitionCell]) -> None:
        starts = range(0, len(cells), OF_A_PART)
        self._parts = tuple(compress(_CELLS.dump_json(tuple(cells[one : one + OF_A_PART])), FASTEST) for one in starts)

    def between(self, first: int, last: int) -> tuple[PartitionCell, ...]:
        """The cells from one number to another, both included; fewer if there are not so many."""
        parts = self._parts[first // OF_A_PART : last // OF_A_PART + 1]
        cells = [cell for part in parts for cell in _CELLS.validate_json(decompress(part))]
        start = first // OF_A_PART * OF_A_PART
        return tuple(cells[first - start : last + 1 - start])
