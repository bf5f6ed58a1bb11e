"""Columns that an output declares are checked before anything of them is published, and told in its table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.run.small_project import FILES, NUMBERS, SmallProject

from stagehold.errors import ColumnsNotAsDeclared, GateBlocked, StageContractBroken
from stagehold.run.here.trial import try_stage
from stagehold.run.planning.planning import RunRequest
from stagehold.testing.stage_tests import StageTests

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def tens(ctx, source):
    return source.select("number", F.expr("nullif(number DIV 10, 8)").alias("ten"), F.array("number").alias("all"))

@stage
def summed(ctx, tens):
    return tens.groupBy("ten").agg(F.sum("number"))

@stage
def alone(ctx, tens):
    return tens.select("number")
"""
QUERY = "SELECT number, nullif(number DIV 10, 8) AS ten, array(number) AS all FROM source"
COLUMNS = {
    "number": {"type": "bigint", "null": False, "description": "Of the file"},
    "ten": "bigint",
    "all": "array<bigint>",
}
NEVER = {**COLUMNS, "ten": {"type": "bigint", "null": False}}  # 80 to 89, in the last partition, have none
PUBLISHED = {"type": "blocking_persistent", "table": "marts.tens"}


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "declared"
    (folder / "sql").mkdir(parents=True)
    (folder / "sql" / "tens.sql").write_text(QUERY)
    return SmallProject.make(folder, spark_remote, JOBS)


def tens(columns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"tens": {"source": NUMBERS, "output": {**PUBLISHED, "columns": columns}, **fields}}


@pytest.fixture(params=[{}, {"sql": "sql/tens.sql"}], ids=["function", "query"])
def fields(request) -> dict[str, Any]:
    return dict(request.param)


def test_a_table_has_the_columns_with_their_comments(project, fields):
    pipeline = project.pipeline("told", tens(COLUMNS, **fields))
    assert len(project.run(pipeline, "first")["tens"]) == FILES
    table = DeltaTable(Path(project.settings.lake_uri) / "marts" / "tens")
    told = {each["name"]: each["metadata"].get("comment") for each in json.loads(table.schema().to_json())["fields"]}
    assert told == {"number": "Of the file", "ten": None, "all": None, "_partition": None, "_interval": None}
    assert table.to_pyarrow_table().num_rows == FILES * 25


def test_other_columns_are_refused_before_anything_is_computed(project, fields):
    wrong = {"number": "int", "ten": "bigint", "nine": "date"}
    pipeline = project.pipeline("other", tens(wrong, **fields))
    with pytest.raises(ColumnsNotAsDeclared) as refused:
        project.run(pipeline, "first")
    assert [(each.column, each.declared, each.found) for each in refused.value.problems] == [
        ("number", "int", "bigint"),
        ("nine", "date", "no such column"),
        ("all", "nothing", "array<bigint>"),
    ]
    assert project.records(pipeline, "i") == {}
    assert not (Path(project.settings.lake_uri) / "marts").exists()
    again = project.pipeline("other", tens(COLUMNS, **fields))
    assert len(project.run(again, "second")["tens"]) == FILES


def test_a_null_is_refused_before_its_wave_is_published(project, fields):
    pipeline = project.pipeline("nulls", tens(NEVER, **fields), wave="1ms")
    with pytest.raises(
        ColumnsNotAsDeclared, match="ten: declared bigint, never NULL; found NULL in 10 rows of"
    ) as refused:
        project.run(pipeline, "first")
    assert "partition 3;" in str(refused.value)
    assert {record.partition for record in project.records(pipeline, "i").get("tens", ())} == {0, 1}  # the wave before


def test_rows_that_a_gate_sets_aside_are_not_published_and_may_be_null(project):
    project.write_suite("type: expect_column_values_to_not_be_null, column: ten, on_fail: quarantine")
    pipeline = project.pipeline("aside", tens(NEVER, gate="own"))
    assert sum(record.rows for record in project.run(pipeline, "first")["tens"]) == FILES * 25 - 10


def test_what_a_gate_refuses_is_told_by_the_gate(project):
    project.write_suite("type: expect_column_values_to_not_be_null, column: ten")
    with pytest.raises(GateBlocked):
        project.run(project.pipeline("gated", tens(NEVER, gate="own")), "first")


def test_a_reader_by_key_finds_its_groups_in_declared_columns(project):
    keyed = {"inputs": {"tens": {"exchange": "keyed", "key": "number"}}, "partitions": 2}
    stages = {"tens": {"source": NUMBERS, "output": {"columns": COLUMNS}}, "alone": keyed}
    found = project.made("keyed", stages)
    assert sorted([*found[0], *found[1]]) == [*range(FILES * 25)]


def test_so_it_is_where_a_partition_is_tried(project, fields):
    pipeline = project.pipeline("tried", tens(NEVER, **fields))
    request = RunRequest(pipeline, "try", "i", {}, None)
    assert try_stage(request, "tens", 0, project.settings, print, most=1).count == 25
    with pytest.raises(ColumnsNotAsDeclared, match="NULL in 10 rows of partition 3;"):
        try_stage(request, "tens", 3, project.settings, print, most=1)


def test_so_it_is_in_a_test_of_a_stage(project, spark, tmp_path):
    folder = tmp_path / "pipelines"
    folder.mkdir()
    pipeline = {"pipeline": "tested", "stages": {"tens": {"job": "declared:tens", **tens(NEVER)["tens"]}}}
    (folder / "tested.yaml").write_text(json.dumps(pipeline))
    rows = [{"number": number} for number in (3, 84)]
    stages = StageTests(spark, replace(project.settings, pipelines=str(folder)))
    given = [spark.createDataFrame(part, "number bigint") for part in (rows[:1], rows)]
    stages.run("tens", given[0]).assert_rows([{"number": 3, "ten": 0, "all": [3]}])
    with pytest.raises(ColumnsNotAsDeclared, match="NULL in 1 row of partition 0;"):
        stages.run("tens", given[1])


def test_a_column_that_no_table_can_have_is_told_with_its_alias_before_it_is_computed(project):
    stages = {
        "tens": {"source": NUMBERS},
        "summed": {"inputs": {"tens": {"exchange": "keyed", "key": "ten"}}, "partitions": 1},
    }
    pipeline = project.pipeline("nameless", stages)
    alias = r"'sum\(number\)'; .*`\.alias\(\"sum_number\"\)` on it, or `AS sum_number`"
    with pytest.raises(StageContractBroken, match=alias):
        project.run(pipeline, "first")
    assert "summed" not in project.records(pipeline, "i")
    with pytest.raises(StageContractBroken, match="sum_number"):
        try_stage(RunRequest(pipeline, "try", "i", {}, None), "summed", 0, project.settings, print, most=1)
