from __future__ import annotations

import pytest

from stagehold.errors import KeyTypesUnlike
from stagehold.model.keys.key_types import KeyKind, KeyType
from stagehold.plan.isolation.key_checks import KeyColumn, key_problems

INT, BIGINT, DOUBLE = (
    KeyType(KeyKind.WHOLE, "int", 10),
    KeyType(KeyKind.WHOLE, "bigint", 20),
    KeyType(KeyKind.DOUBLE, "double"),
)
TEXT, DAY, TIME, FLOAT = (
    KeyType(kind, kind.name.lower()) for kind in (KeyKind.STRING, KeyKind.DATE, KeyKind.TIMESTAMP, KeyKind.FLOAT)
)
FOLDED, MAP = KeyType(KeyKind.COLLATED, "string collate UNICODE_CI"), KeyType(KeyKind.UNUSABLE, "map<int,int>")


def keys(*types: KeyType) -> list[list[KeyColumn]]:
    """A key of one column in each of some stages."""
    return [[KeyColumn(stage, "k", kind)] for stage, kind in zip("abcd", types, strict=False)]


def test_keys_that_may_meet_have_no_problem() -> None:
    assert key_problems(keys(INT, BIGINT, DOUBLE)) == []
    assert key_problems([]) == []


@pytest.mark.parametrize(
    ("types", "columns", "stage", "instead"),
    [
        ((TEXT, INT), ("a.k is string", "b.k is int"), "a", 'F.col("k").cast("int")'),
        ((INT, TEXT), ("a.k is int", "b.k is string"), "b", 'F.col("k").cast("int")'),
        ((TIME, DAY), ("a.k is timestamp", "b.k is date"), "b", 'F.col("k").cast("timestamp")'),
        ((INT, FLOAT), ("a.k is int", "b.k is float"), "b", 'F.col("k").cast("double")'),
        ((INT, DOUBLE, TEXT), ("a.k is int", "c.k is string"), "c", 'F.col("k").cast("int")'),
        ((FOLDED, FOLDED), ("a.k is string collate UNICODE_CI",), "a", 'F.collate("k", "UTF8_BINARY")'),
        ((MAP,), ("a.k is map<int,int>",), "a", 'F.to_json("k"), or another column,'),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_a_problem_names_the_columns_and_what_to_return_instead(types, columns, stage, instead) -> None:
    (problem,) = key_problems(keys(*types))
    assert (problem.columns, problem.stage, problem.instead) == (columns, stage, instead)


def test_columns_are_compared_by_their_place() -> None:
    left = [KeyColumn("left", "day", DAY), KeyColumn("left", "n", INT)]
    right = [KeyColumn("right", "n", INT), KeyColumn("right", "m", INT)]
    assert [problem.columns for problem in key_problems([left, right])] == [("left.day is date", "right.n is int")]


def test_the_text_says_what_is_wrong_and_what_to_do() -> None:
    text = str(KeyTypesUnlike("joined", key_problems(keys(TEXT, INT))))
    assert text.splitlines()[1].strip().startswith("a.k is string and b.k is int: ")
    assert 'have a return F.col("k").cast("int") in its place' in text
    assert "Nothing of it was computed" in text
    assert text.endswith("run `stagehold resume`.")
