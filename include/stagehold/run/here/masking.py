"""Values of rows that go into a repository, replaced so that nobody can tell them, and equal ones are still equal."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagehold.errors import InvalidArgument

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]

KEY = "mask.key"
ALLOWED = "columns of text, bytes, int, bigint, decimal, double, dates and moments"
WHOLE = 2**31 - 1  # numbers fit into an int, so that an int and a bigint that join are masked alike
MOST_DAYS = 180  # by which a date is moved, either way


@dataclass(frozen=True)
class Masking:
    """Replaces values by what follows from them and from a ``key``: without it, nobody finds them by trying."""

    key: bytes

    @staticmethod
    def of_home(home: Path) -> Masking:
        """With the key of a home, which is made once, so that all samples of it are masked alike."""
        home.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(home / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return Masking((home / KEY).read_bytes())
        with os.fdopen(file, "wb") as written:
            key = secrets.token_hex(32).encode()
            written.write(key)
        return Masking(key)

    def masked(self, rows: Table, columns: Sequence[str]) -> Table:
        """The rows, with those of the columns that they have masked. NULL stays NULL.

        :raises InvalidArgument: a column is of a type that nothing stands in for
        """
        import pyarrow as pa

        for place, field in enumerate(rows.schema):
            if field.name in columns:
                mask = self._mask_of(field)
                values = [None if value is None else mask(value) for value in rows.column(place).to_pylist()]
                rows = rows.set_column(place, field, pa.array(values, field.type))
        return rows

    def _mask_of(self, field: Any) -> Callable[[Any], Any]:
        from pyarrow import types

        kind = field.type
        if types.is_string(kind) or types.is_large_string(kind):
            return lambda value: self._digest(value).hex()[:16]
        if types.is_binary(kind) or types.is_large_binary(kind):
            return self._digest
        if types.is_int32(kind) or types.is_int64(kind):
            return lambda value: self._number(value) % WHOLE
        if types.is_decimal(kind):
            return lambda value: _like(value, self._number(value))
        if types.is_floating(kind):
            return lambda value: float(_like(Decimal(str(value)), self._number(value)))
        if types.is_date(kind):
            return self._moved
        if types.is_timestamp(kind):
            return lambda value: value + (self._moved(value.date()) - value.date())
        raise InvalidArgument("--mask", f"{field.name}, of the type {kind}", ALLOWED)

    def _moved(self, day: date) -> date:
        days = self._number(day) % (2 * MOST_DAYS + 1) - MOST_DAYS
        return day + timedelta(days=days)

    def _number(self, value: Any) -> int:
        return int.from_bytes(self._digest(value)[:8])

    def _digest(self, value: Any) -> bytes:
        said = value if isinstance(value, bytes) else _said(value).encode()
        return hmac.new(self.key, said, hashlib.sha256).digest()


def _said(value: Any) -> str:
    """Equal values say the same: 2.50 is 2.5."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _like(value: Decimal, number: int) -> Decimal:
    """A number of as many digits and of the same sign, so that it fits wherever the value did."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # not a number, or without an end
        return value
    return Decimal((sign, tuple(map(int, str(number % 10 ** len(digits)).zfill(len(digits)))), exponent))
