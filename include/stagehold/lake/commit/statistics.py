"""File statistics as Delta's log holds them. Whatever could make a reader skip rows that match is left out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from stagehold.lake.store.footers import ColumnRange, Footer

LONGEST_TEXT = 32  # Delta's own writers cut longer ones
LAST_MOMENT = datetime.fromisoformat("9999-12-31T23:59:59.999")  # of those that are whole milliseconds
DIGITS = 15  # a decimal with more of them is not the same after a detour through a JSON number


def delta_statistics(footer: Footer) -> str:
    """JSON for the ``stats`` of an add action.

    Ranges are given for whole numbers, short texts, dates, timestamps and decimals that JSON can hold. Not for
    floating point: Parquet's range may leave NaN out, which Spark sorts above everything.
    """
    ranged = {name: column for name, column in footer.columns.items() if _has_range(column)}
    return json.dumps(
        {
            "numRecords": footer.rows,
            "minValues": {name: _lowest(column.minimum) for name, column in ranged.items()},
            "maxValues": {name: _highest(column.maximum) for name, column in ranged.items()},
            "nullCount": {name: column.nulls for name, column in footer.columns.items() if column.nulls is not None},
        }
    )


def _has_range(column: ColumnRange) -> bool:
    return _is_exact(column.minimum) and _is_exact(column.maximum)


def _is_exact(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) <= DIGITS
    if isinstance(value, datetime):
        return value.replace(tzinfo=None) <= LAST_MOMENT  # a later one would be rounded up into the year 10000
    return isinstance(value, date) or (isinstance(value, int) and not isinstance(value, bool))


def _lowest(value: Any) -> Any:
    return _timestamp(value) if isinstance(value, datetime) else _plain(value)


def _highest(value: Any) -> Any:
    """The log keeps milliseconds, so a maximum between two of them has to be the later one."""
    return (
        _timestamp(value + timedelta(microseconds=-value.microsecond % 1000))
        if isinstance(value, datetime)
        else _plain(value)
    )


def _timestamp(value: datetime) -> str:
    text = (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo else text


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value
