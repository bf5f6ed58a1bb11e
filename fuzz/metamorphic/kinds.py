"""The types of the algebra: values that are awkward on purpose, and what two unlike types are compared as."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from math import inf, nan
from random import Random
from typing import Any

import pyarrow as pa


class Kind(StrEnum):
    """A column's type, by its name in both engines' SQL where they have one name."""

    INT = "int"
    BIG = "bigint"
    DEC1 = "decimal(10,1)"
    DEC2 = "decimal(10,2)"
    WIDE = "decimal(38,10)"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"

    @property
    def slug(self) -> str:
        return self.name.lower()

    @property
    def duckdb(self) -> str:
        return {Kind.STRING: "varchar", Kind.TIMESTAMP: "timestamptz"}.get(self, self.value)

    @property
    def numeric(self) -> bool:
        return self in NUMERIC


NUMERIC = (Kind.INT, Kind.BIG, Kind.DEC1, Kind.DEC2, Kind.WIDE, Kind.DOUBLE)
STORED = tuple(kind for kind in Kind if kind is not Kind.WIDE)
# pandas makes floats of whole numbers beside nulls, and takes NaN for a null.
SAFE_IN_PANDAS = (Kind.INT, Kind.DEC1, Kind.DEC2, Kind.STRING, Kind.DATE, Kind.BOOLEAN)
ARROW = {
    Kind.INT: pa.int32(),
    Kind.BIG: pa.int64(),
    Kind.DEC1: pa.decimal128(10, 1),
    Kind.DEC2: pa.decimal128(10, 2),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.BOOLEAN: pa.bool_(),
}
FIRST_DAY = date(2020, 1, 1)
FIRST_MOMENT = datetime(2020, 1, 1, tzinfo=UTC)
WHOLE = (-3, -1, 0, 1, 2, 3, 5, 8, 10, 11)
# Values that are equal across types are in all pools; each has some that only it has.
POOLS: dict[Kind, tuple[Any, ...]] = {
    Kind.INT: WHOLE,
    Kind.BIG: (*WHOLE, 2**53, 2**53 + 1, -(2**40)),
    Kind.DEC1: (*map(Decimal, WHOLE), Decimal("0.5"), Decimal("-1.5"), Decimal("10.1")),
    Kind.DEC2: (*map(Decimal, WHOLE), Decimal("0.50"), Decimal("0.25"), Decimal("10.10")),
    Kind.DOUBLE: (*map(float, WHOLE), -0.0, nan, inf, -inf, 0.5, float(2**53)),
    Kind.STRING: ("", " ", "a", "A", "ä", "a\u0308", "0", "1", "\x1f", "\U0001f600x", "ß", "zz"),
    Kind.DATE: tuple(FIRST_DAY + timedelta(days) for days in (-40_000, -1, 0, 1, 2, 30, 31, 366)),
    Kind.TIMESTAMP: tuple(
        FIRST_MOMENT + timedelta(days, seconds, micros)
        for days, seconds, micros in (
            (-1, 0, 0),
            (0, 0, 0),
            (0, 0, 1),
            (0, 3600, 0),
            (1, 0, 0),
            (2, 0, 0),
            (31, 86_399, 999_999),
        )
    ),
    Kind.BOOLEAN: (True, False),
}
# What a join of keys of unlike types compares them as; both engines are told.
UNLIKE: dict[frozenset[Kind], Kind] = {
    **{frozenset((Kind.DOUBLE, other)): Kind.DOUBLE for other in (Kind.INT, Kind.BIG, Kind.DEC1, Kind.DEC2)},
    **{frozenset((Kind.INT, other)): Kind.WIDE for other in (Kind.DEC1, Kind.DEC2)},
    **{frozenset((Kind.BIG, other)): Kind.WIDE for other in (Kind.DEC1, Kind.DEC2)},
    frozenset((Kind.INT, Kind.BIG)): Kind.BIG,
    frozenset((Kind.DEC1, Kind.DEC2)): Kind.WIDE,
    frozenset((Kind.DATE, Kind.TIMESTAMP)): Kind.TIMESTAMP,
    frozenset((Kind.INT, Kind.STRING)): Kind.STRING,
}


def common_kind(left: Kind, right: Kind) -> Kind:
    """What values of both are compared as."""
    return left if left is right else UNLIKE[frozenset((left, right))]


def draw(random: Random, kind: Kind, nulls: float, skew: float) -> Any:
    """A value; with probability ``skew`` the pool's favourite, so that one key has many rows."""
    if random.random() < nulls:
        return None
    pool = POOLS[kind]
    return pool[len(pool) // 2] if random.random() < skew else random.choice(pool)
