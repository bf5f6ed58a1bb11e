"""After which failures an output is stored that was computed along, as a table of a pipeline's failed attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import attempt
from tests.plan.resume.situations import forward, gather, source, stage

from stagehold.plan.restart.fallback import CAUSES, in_stored_form, may_fall_back
from stagehold.plan.restart.rules import RULES
from stagehold.plan.split.regions import sources_within, stage_regions
from stagehold.spec.pipeline import Fallback, Output, OutputType, Pipeline

CHOSEN, GIVEN = Output(type=OutputType.PIPELINED, falls_back=True), Output(type=OutputType.PIPELINED)
RAW = source("raw").model_copy(update={"output": CHOSEN})
PIPELINE = Pipeline(
    name="sales",
    file="sales.yaml",
    stages=(
        RAW,
        stage("clean", forward("raw"), output=GIVEN),
        stage("ready", forward("clean")),
        stage("dealt", gather("ready"), partitions=1, output=CHOSEN),
        stage("total", forward("dealt"), partitions=1),
    ),
)
FIRST, SECOND = "raw__clean__ready", "dealt__total"


def failed(region: str, epoch: int, rule: str, share: str | None = None):
    return replace(attempt(epoch, region=region), failure_rule=rule, share=share)


TABLE = [
    ((), {}),
    ((failed(FIRST, 3, "disk_full"),), {"raw": Fallback("disk_full", 3)}),
    ((failed(FIRST, 3, "stalled", "0-1"), failed(FIRST, 4, "disk_full")), {"raw": Fallback("stalled", 3)}),
    (
        (failed(SECOND, 1, "spark_gone"), failed(FIRST, 2, "executor_lost")),
        {"raw": Fallback("executor_lost", 2), "dealt": Fallback("spark_gone", 1)},
    ),
    ((failed("a_region_of_other_days", 1, "spark_gone"),), {}),
]


@pytest.mark.parametrize(("attempts", "expected"), TABLE)
def test_what_a_region_lets_flow_by_itself_is_stored_after_the_first_such_failure(attempts, expected):
    form = in_stored_form(PIPELINE, attempts)
    assert {one.name: one.output.fallback for one in form.stages if one.output.fallback} == expected
    stored = {one.name for one in form.stages if one.output.stored}
    assert stored == {"ready", "total", *expected}
    assert in_stored_form(form, ()) == PIPELINE


def test_neither_types_nor_regions_nor_who_tells_what_was_read_change():
    form = in_stored_form(PIPELINE, [failed(FIRST, 1, "stalled"), failed(SECOND, 2, "stalled")])
    assert stage_regions(form) == stage_regions(PIPELINE)
    assert [one.output.type for one in form.stages] == [one.output.type for one in PIPELINE.stages]
    assert [one.name for one in sources_within(form.stage("ready"), form)] == ["raw"]


def test_its_causes_are_rules():
    assert {rule.name for rule in RULES} >= CAUSES


def test_only_a_pipeline_with_such_an_output_has_to_ask():
    assert may_fall_back(PIPELINE)
    assert not may_fall_back(Pipeline(name="x", file="x.yaml", stages=(source("raw"), stage("a", forward("raw")))))
