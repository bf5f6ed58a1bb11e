"""How a table's columns grow: what is wider, and what is neither."""

from __future__ import annotations

import pytest

from stagehold.lake.store.columns import Growth

LADDER = ("byte", "short", "integer", "long")


def grown(table: str, frame: str) -> str:
    growth = vars(Growth.of({"it": table}, {"it": frame}))
    return " and ".join(name for name, some in growth.items() if some) or "same"


def test_whole_numbers_and_floating_points_get_wider_by_their_bytes() -> None:
    for order in (LADDER, ("float", "double")):
        for place, narrow in enumerate(order):
            assert [grown(narrow, kind) for kind in order] == [
                *("narrower",) * place,
                "same",
                *("wider",) * (len(order) - place - 1),
            ]


@pytest.mark.parametrize(
    ("table", "frame", "word"),
    [
        ("decimal(5,2)", "decimal(6,2)", "wider"),
        ("decimal(5,2)", "decimal(6,3)", "wider"),
        ("decimal(5,2)", "decimal(6,4)", "other"),  # a digit less before the point
        ("decimal(6,3)", "decimal(5,2)", "narrower"),
        ("decimal(5,2)", "decimal(5,3)", "other"),
        ("decimal(10,0)", "integer", "other"),
        ("long", "double", "other"),  # not each whole number is a double
        ("date", "timestamp_ntz", "other"),  # whose texts in statistics differ
        ("string", "binary", "other"),
    ],
)
def test_decimals_keep_all_digits_and_other_kinds_stay_what_they_are(table: str, frame: str, word: str) -> None:
    assert grown(table, frame) == word


def test_columns_come_and_are_missing_by_name() -> None:
    nested = {"type": "array", "elementType": "long", "containsNull": True}
    growth = Growth.of({"a": "long", "b": nested}, {"c": "string", "b": {**nested, "elementType": "string"}})
    assert (growth.new, growth.missing, growth.other) == (("c",), ("a",), ("b",))
