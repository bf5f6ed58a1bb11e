"""Which types may meet in a keyed exchange;
`tests/run/functions/test_key_columns.py` shows that equal keys then have equal groups.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from stagehold.model.keys.key_types import KeyKind, KeyType, may_meet

WHOLE = {
    name: KeyType(KeyKind.WHOLE, name, digits)
    for name, digits in (("tinyint", 3), ("smallint", 5), ("int", 10), ("bigint", 20))
}
FLOAT, DOUBLE = KeyType(KeyKind.FLOAT, "float"), KeyType(KeyKind.DOUBLE, "double")
NOTHING = KeyType(KeyKind.NOTHING, "void")
OTHER_KINDS = (KeyKind.STRING, KeyKind.BOOLEAN, KeyKind.BINARY, KeyKind.DATE, KeyKind.TIMESTAMP, KeyKind.TIMESTAMP_NTZ)
OTHERS = [KeyType(kind, kind.name.lower()) for kind in OTHER_KINDS]


def decimal(precision: int, scale: int) -> KeyType:
    return KeyType(KeyKind.DECIMAL, f"decimal({precision},{scale})", precision - scale, scale)


def struct(*parts: KeyType) -> KeyType:
    return KeyType(KeyKind.STRUCT, f"struct<{','.join(part.text for part in parts)}>", parts=parts)


def array(part: KeyType) -> KeyType:
    return KeyType(KeyKind.ARRAY, f"array<{part.text}>", parts=(part,))


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (WHOLE["tinyint"], WHOLE["bigint"], True),
        (WHOLE["int"], DOUBLE, True),
        (FLOAT, DOUBLE, True),
        (FLOAT, decimal(38, 38), True),
        (WHOLE["smallint"], FLOAT, True),
        (WHOLE["int"], FLOAT, False),  # without ANSI mode the int is made a float
        (WHOLE["bigint"], FLOAT, False),
        (decimal(10, 1), decimal(10, 2), True),
        (decimal(38, 0), decimal(38, 0), True),
        (decimal(38, 0), decimal(38, 10), False),  # 1 = 1.4 to Spark
        (decimal(28, 0), decimal(38, 10), True),
        (WHOLE["bigint"], decimal(38, 18), True),
        (WHOLE["bigint"], decimal(38, 19), False),
        (struct(WHOLE["int"], OTHERS[0]), struct(DOUBLE, OTHERS[0]), True),
        (struct(WHOLE["int"]), struct(WHOLE["int"], WHOLE["int"]), False),
        (array(struct(decimal(38, 0))), array(struct(decimal(38, 10))), False),
        (array(WHOLE["int"]), WHOLE["int"], False),
        (NOTHING, array(WHOLE["int"]), True),
        (NOTHING, KeyType(KeyKind.UNUSABLE, "map<int,int>"), False),
        (
            KeyType(KeyKind.COLLATED, "string collate UNICODE"),
            KeyType(KeyKind.COLLATED, "string collate UNICODE"),
            False,
        ),
    ],
    ids=lambda value: getattr(value, "text", value),
)
def test_pairs(one: KeyType, other: KeyType, meet: bool) -> None:
    assert (may_meet(one, other), may_meet(other, one)) == (meet, meet)


@pytest.mark.parametrize(
    ("one", "other"), [*combinations_with_replacement([*OTHERS, WHOLE["int"], DOUBLE], 2)], ids=lambda value: value.text
)
def test_what_is_no_number_meets_only_its_own_kind(one: KeyType, other: KeyType) -> None:
    numbers = {KeyKind.WHOLE, KeyKind.DOUBLE}
    assert may_meet(one, other) is (one == other or {one.kind, other.kind} <= numbers)
