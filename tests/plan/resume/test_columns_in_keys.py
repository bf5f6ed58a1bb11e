"""What is declared of an output's columns in the keys of partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import CHAIN, DONE, words

from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.pipeline import Output, Pipeline
from stagehold.spec.settings.output_settings import ColumnForm


def declaring(columns: dict[str, ColumnForm]) -> Pipeline:
    output = CHAIN.stage("clean").output.model_copy(update={"columns": columns})
    assert isinstance(output, Output)
    stages = [each.model_copy(update={"output": output}) if each.name == "clean" else each for each in CHAIN.stages]
    return CHAIN.model_copy(update={"stages": tuple(stages)})


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"id": ColumnForm(type="bigint")},
        {"id": ColumnForm(type="bigint", description="Number"), "name": ColumnForm(type="string")},
    ],
)
def test_columns_that_may_be_null_are_declared_without_computing_anything_again(columns):
    assert resume_plan(replace(DONE, pipeline=declaring(columns))).decisions == resume_plan(DONE).decisions


def test_data_that_was_not_looked_at_for_null_is_computed_again_when_a_column_may_have_none():
    never = {"id": ColumnForm(type="bigint", null=False)}
    found = resume_plan(replace(DONE, pipeline=declaring(never)))
    assert words(found)["raw"] == words(resume_plan(DONE))["raw"]
    assert words(found)["clean"] != words(resume_plan(DONE))["clean"]
    assert {str(each.reason) for each in found.of("clean")} == {"the settings of the stage changed"}
