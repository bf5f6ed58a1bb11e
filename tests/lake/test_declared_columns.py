"""Columns that an author declares: compared with a frame, with NULLs that were counted, and with a published table."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from stagehold.errors import ColumnsNotAsDeclared
from stagehold.lake.commit.delta_log import open_table
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.declared_columns import as_declared, column_changes, refuse_nulls, refuse_other_columns
from stagehold.lake.store.location import TableLocation
from stagehold.lake.tables import ensure_table
from stagehold.spec.pipeline import Output, OutputType, Stage

FRAME = StructType(
    [
        StructField("id", LongType(), False),
        StructField("tags", ArrayType(StructType([StructField("Name", StringType(), False)]))),
        StructField("spent", DecimalType(18, 2)),
        StructField("_partition", IntegerType()),
    ]
)
DECLARED = {
    "spent": {"type": "decimal(18, 2)"},
    "id": {"type": "BIGINT"},
    "tags": {"type": "array<struct<Name:string>>"},
}


def stage(columns, **output):
    kept = {"type": OutputType.BLOCKING_PERSISTENT, "table": "marts.totals", **output, "columns": columns}
    output = Output.model_validate(kept, by_alias=True)
    return Stage(name="totals", job="jobs:totals", output=output, partitions=2, max_parallelism=128)


def refused(columns):
    with pytest.raises(ColumnsNotAsDeclared) as caught:
        refuse_other_columns(stage(columns), FRAME)
    return [(each.column, each.declared, each.found) for each in caught.value.problems], str(caught.value)


def test_columns_are_taken_in_any_order_and_as_spark_spells_their_types():
    refuse_other_columns(stage(DECLARED), FRAME)
    refuse_other_columns(stage({}), FRAME)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"id": {"type": "int", "null": False}}, ("id", "int, never NULL", "bigint")),
        ({"ID": {"type": "bigint"}}, ("ID", "bigint", "no such column")),
        (
            {"tags": {"type": "array<struct<name:string>>"}},
            ("tags", "array<struct<name:string>>", "array<struct<Name:string>>"),
        ),
        ({"spent": {"type": "decimal(18,4)"}}, ("spent", "decimal(18,4)", "decimal(18,2)")),
    ],
)
def test_each_column_that_is_not_as_declared_is_named(changed, problem):
    problems, text = refused({**DECLARED, **changed})
    assert problems == [problem]
    assert "Nothing of it was computed" in text


def test_a_column_that_is_not_declared_is_refused_with_the_way_to_write_another_type():
    problems, text = refused({"id": {"type": "int"}, "spent": {"type": "decimal(18,2)"}})
    assert problems == [("id", "int", "bigint"), ("tags", "nothing", "array<struct<Name:string>>")]
    assert "CAST(id AS int) AS id" in text
    assert "tags: declared nothing; found array<struct<Name:string>>; leave it out, or declare it" in text


def test_only_declared_columns_are_never_null_whatever_spark_says_of_them():
    never = {"spent": {"type": "decimal(18,2)", "null": False}}
    nullable = {each.name: each.nullable for each in as_declared(FRAME, stage({**DECLARED, **never}).output.columns)}
    assert nullable == {"id": True, "tags": True, "spent": False, "_partition": True}


def test_nulls_are_told_with_their_partitions_and_only_where_there_may_be_none():
    never = stage({**DECLARED, "spent": {"type": "decimal(18,2)", "null": False}})
    refuse_nulls(never, {0: {"spent": 0}, 1: {}})
    refuse_nulls(stage(DECLARED), {0: {"spent": 7}})
    with pytest.raises(ColumnsNotAsDeclared, match=r"NULL in 5 rows of partitions 1, 12; .*COALESCE") as caught:
        refuse_nulls(never, {12: {"spent": 3}, 0: {"spent": 0}, 1: {"spent": 2}})
    assert "Nothing of this wave was published" in str(caught.value)


@pytest.fixture
def shared(tmp_path):
    return TableLocation("totals", str(tmp_path / "totals"), "stagehold/p/totals/2026-11-20", "2026-11-20")


def told(location):
    fields = json.loads(open_table(location.uri).schema().to_json())["fields"]
    return {each["name"]: (each["metadata"], each["nullable"]) for each in fields if each["metadata"]}


COMMENT = {"type": "bigint", "null": False, "description": "Who ordered; in Ångström"}


def test_a_table_tells_its_readers_what_is_declared_and_what_changes_of_that(shared):
    for description, version in ((COMMENT["description"], 1), (COMMENT["description"], 1), ("Who paid", 2)):
        declared = stage({**DECLARED, "id": {**COMMENT, "description": description}})
        ensure_table(shared, FRAME, Claim(1, "a"), declared.output)
        assert told(shared) == {"id": ({"comment": description, "stagehold.null": "false"}, True)}
        assert open_table(shared.uri).version() <= version
    ensure_table(shared, FRAME, Claim(1, "a"), stage({}).output)
    assert told(shared)["id"][0]["comment"] == "Who paid"  # nothing is declared any more, so nothing is changed


def test_so_does_a_table_that_its_stage_owns(shared, tmp_path):
    own = TableLocation("totals", str(tmp_path / "own"), "stagehold/p/totals/i", None)
    for description in ("first", "second"):
        declared = stage({**DECLARED, "id": {**COMMENT, "description": description}})
        ensure_table(own, FRAME, Claim(1, "a"), declared.output)
        assert told(own) == {"id": ({"comment": description, "stagehold.null": "false"}, True)}


def test_what_a_frame_says_of_its_columns_counts_as_far_as_nothing_is_declared(shared):
    frame = StructType(
        [
            StructField("id", LongType(), True, {"comment": "of its source", "stagehold.null": "false"}),
            StructField("_partition", IntegerType()),
        ]
    )
    ensure_table(shared, frame, Claim(1, "a"), stage({}).output)
    assert told(shared) == {"id": ({"comment": "of its source"}, True)}


def changes(columns, location, **output):
    return {
        each.column: (each.before, each.after, each.breaks)
        for each in column_changes(stage(columns, **output), location.uri)
    }


def test_a_change_that_breaks_readers_is_told_apart_from_one_that_does_not(shared):
    assert changes(DECLARED, shared) == {}
    ensure_table(shared, FRAME, Claim(1, "a"), stage({**DECLARED, "id": COMMENT}).output)
    assert changes({**DECLARED, "id": COMMENT}, shared) == {}
    assert changes({**DECLARED, "day": {"type": "date"}, "id": COMMENT}, shared) == {
        "day": ("not there", "date", False)
    }
    assert changes({"id": COMMENT, "tags": DECLARED["tags"]}, shared) == {"spent": ("decimal(18,2)", "not there", True)}
    assert changes(DECLARED, shared) == {"id": ("bigint, never NULL", "bigint", True)}
    assert changes({**DECLARED, "id": {"type": "int", "null": False}}, shared) == {"id": ("bigint", "int", False)}
    assert changes({**DECLARED, "id": {"type": "string", "null": False}}, shared) == {"id": ("bigint", "string", True)}
    wider = {**DECLARED, "id": COMMENT, "spent": {"type": "decimal(20,2)"}}
    assert changes(wider, shared) == {"spent": ("decimal(18,2)", "decimal(20,2)", True)}


def test_a_table_that_is_fixed_takes_no_new_column(shared):
    ensure_table(shared, FRAME, Claim(1, "a"), stage(DECLARED).output)
    (change,) = column_changes(stage({**DECLARED, "day": {"type": "date"}}, schema="fail"), shared.uri)
    assert (change.breaks, change.effect) == (True, "a run is refused by `schema: fail`")
