"""How many rows make a file of the wanted size: Spark cuts files by rows, since it does not know their bytes before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagehold.lake.store.columns import leaf_types
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

WIDE = 16  # bytes of a text, of a long decimal, and of whatever else has no width of its own
WIDTHS = {
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "float": 4,
    "date": 4,
    "long": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}


@dataclass(frozen=True)
class FileSizer:
    """``target`` bytes per file, of rows that take ``row_bytes`` on average."""

    target: int
    row_bytes: float

    @staticmethod
    def guess(target: int, schema: StructType) -> FileSizer:
        """A guess from the types alone, for a stage of which no output was ever seen. Compression makes the files
        smaller.
        """
        return FileSizer(
            target,
            sum(WIDTHS.get(kind.typeName(), WIDE) for field in schema.fields for kind in leaf_types(field.dataType)),
        )

    @property
    def rows_per_file(self) -> int:
        return max(1, int(self.target / self.row_bytes))

    def corrected_by(self, files: Iterable[DataFile]) -> FileSizer:
        """The size corrected by files of the same stage as they turned out; unchanged when none of them has rows."""
        written = list(files)
        rows = sum(file.rows for file in written)
        return replace(self, row_bytes=sum(file.bytes for file in written) / rows) if rows else self
