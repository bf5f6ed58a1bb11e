"""The union of the columns of files that differ."""

from __future__ import annotations

import pytest

from stagehold.model.source_position import MixedColumns
from stagehold.plan.sources.merging import Array, MapOf, Struct, UnlikeColumns, mixed_columns


def columns(**fields) -> Struct:
    return Struct(tuple(fields.items()))


def test_files_with_the_same_columns_in_any_order_are_not_mixed():
    assert mixed_columns({"a": columns(n="int", s="string"), "b": columns(s="string", n="int")}) is None
    assert mixed_columns({}) is None


def test_the_union_goes_by_name_and_names_a_file_of_each_kind():
    found = mixed_columns({"c": columns(n="int"), "b": columns(N="bigint", s="string"), "a": columns(n="int")})
    assert found == MixedColumns(("a", "b"), (("n", "bigint"), ("s", "string")), ("n",))


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        ("tinyint", "smallint", "smallint"),
        ("int", "bigint", "bigint"),
        ("float", "double", "double"),
        ("int", "double", "double"),
        ("int", "float", "double"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(6,4)", "decimal(7,4)"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("bigint", "decimal(20,0)", "decimal(20,0)"),
        (columns(x="int"), columns(X="bigint", y="string"), "struct<`x`:bigint,`y`:string>"),
        (Array(columns(x="int")), Array(columns(y="int")), "array<struct<`x`:int,`y`:int>>"),
        (MapOf("string", "int"), MapOf("string", "bigint"), "map<string,bigint>"),
    ],
)
def test_types_are_widened_to_one_that_holds_all_values(one, other, wider):
    for first, second in ((one, other), (other, one)):
        found = mixed_columns({"a": columns(n=first), "b": columns(n=second)})
        assert found is not None
        assert found.wider == ("n",)
        assert found.fields[0][1].replace("X", "x") in (wider, wider.replace("`x`:int,`y`:int", "`y`:int,`x`:int"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bigint", "double"),
        ("int", "string"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(38,0)", "decimal(38,2)"),
        (columns(x="int"), columns(x="string")),
        (MapOf("string", "int"), MapOf("int", "int")),
        (Array("int"), "int"),
    ],
)
def test_types_that_no_type_holds_are_refused_with_both_files(one, other):
    with pytest.raises(UnlikeColumns, match=r"column n is .* in /raw/a and .* in /raw/b"):
        mixed_columns({"/raw/a": columns(n=one), "/raw/b": columns(n=other)})
