"""What a case came to: rows, compared as multisets whatever engine they come from, or a refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite

import pyarrow as pa

Rows = Counter[tuple[Hashable, ...]]


@dataclass(frozen=True)
class Answer:
    """Rows by partition of the last stage."""

    partitions: Mapping[int, Rows]

    @property
    def rows(self) -> Rows:
        return sum(self.partitions.values(), Counter())

    def __str__(self) -> str:
        return f"{self.rows.total()} rows"


@dataclass(frozen=True)
class Refusal:
    """``error`` is the class; ``meant`` says that it is one of Stagehold's own, of which a second try makes nothing
    else.

    ``published`` are the stages of the refused region that have something readable all the same.
    """

    error: str
    stage: str
    text: str
    meant: bool
    published: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.error} at {self.stage}: {self.text}"


Outcome = Answer | Refusal


def multiset(table: pa.Table, names: Iterable[str]) -> Rows:
    """Rows of some columns, as the exact values that they are."""
    columns = [[exact(cell) for cell in _in_one_unit(table.column(name)).to_pylist()] for name in names]
    return Counter(zip(*columns, strict=True))


def _in_one_unit(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spark writes moments as nanoseconds without a zone, and means UTC."""
    return column.cast(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(column.type) else column


def exact(cell: object) -> Hashable:
    """Equal for what both engines call equal, and for nothing else:
    1, 1.0 and 1.00 are one number, -0.0 is 0.0, NaN is itself.
    """
    if cell is None or isinstance(cell, bool | str):
        return cell if not isinstance(cell, bool) else ("boolean", cell)
    if isinstance(cell, float) and not isfinite(cell):
        return ("float", str(cell))
    if isinstance(cell, int | float | Decimal):
        return Fraction(cell)
    if isinstance(cell, datetime):
        return ("moment", cell.astimezone(UTC).isoformat())
    return (type(cell).__name__, str(cell))


def difference(found: Rows, right: Rows, most: int = 6) -> str:
    """Some rows that are there and should not be, and the other way round."""
    texts = [
        f"  {sign} {count} x {row}"
        for sign, rows in (("+", found - right), ("-", right - found))
        for row, count in rows.items()
    ]
    return "\n".join(texts[:most] + ([f"  and {len(texts) - most} more"] if len(texts) > most else []))
