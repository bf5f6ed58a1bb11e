"""Which partitions an attempt takes that heals for another region."""

from __future__ import annotations

import pytest
from tests.plan.resume.situations import forward, gather, source, stage

from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import Fallback

ALONG = Output(type=OutputType.PIPELINED)
STORED = Output(type=OutputType.PIPELINED, falls_back=True, fallback=Fallback("stalled", 1))
PIPELINE = Pipeline(
    name="p",
    file="p.yaml",
    stages=(
        source("raw").model_copy(update={"output": STORED}),
        stage("clean", forward("raw"), output=STORED),
        stage("last", forward("clean")),
        stage("mixed", forward("raw"), output=ALONG),
        stage("whole", gather("mixed"), partitions=1),
    ),
)

TABLE = [
    (None, {"raw": [0, 1], "clean": [0, 1], "last": [0, 1], "mixed": [0, 1], "whole": [0, 1]}),
    ({"last": frozenset({1})}, {"raw": [1], "clean": [1], "last": [1]}),
    ({"clean": frozenset({0})}, {"raw": [0], "clean": [0]}),
    ({"whole": frozenset({0})}, {"raw": [0, 1], "whole": [0]}),  # by way of what is not stored
]


@pytest.mark.parametrize(("only", "expected"), TABLE)
def test_with_what_is_asked_for_it_takes_what_that_is_made_from_in_the_stored_form(only, expected):
    (region,) = stage_regions(PIPELINE)
    task = RegionTask(RunRequest(PIPELINE, "r", "day", {}), region, "me", "cli", only=only)
    taken = {stage.name: [number for number in (0, 1) if task.takes(stage.name, number)] for stage in PIPELINE.stages}
    assert {name: numbers for name, numbers in taken.items() if numbers} == expected
