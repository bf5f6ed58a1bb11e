"""`partitions: auto`: a number that is decided later, and who takes it over."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spec.samples import Project, edited

AUTO = ("partitions: 8 => partitions: auto", "    max_parallelism: 64\\n => ")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_auto_stage_and_those_that_inherit_from_it_have_a_placeholder_and_one_bound(project: Project) -> None:
    pipeline = project.load(edited("partitions: 8 => partitions: auto"))
    joined, cleaned = pipeline.stage("joined"), pipeline.stage("cleaned")
    assert (joined.partitions, joined.auto_partitions, joined.max_parallelism) == (1, True, 64)
    assert (cleaned.partitions, cleaned.auto_partitions, cleaned.max_parallelism) == (1, False, 64)


@pytest.mark.parametrize(
    ("edits", "line", "field", "problem"),
    [
        (
            ("inputs: {joined: forward} => inputs: {joined: forward}\\n    partitions: 4",),
            30,
            "stages.cleaned.inputs.joined",
            "forward from auto (joined) partition(s) to 4 | equal counts",
        ),
        (
            ("inputs: {joined: forward} => inputs: {joined: forward}\\n    max_parallelism: 100",),
            31,
            "stages.cleaned.max_parallelism",
            "100 | at least that of joined, 128, whose number",
        ),
        (
            ("    params: {limits: [1, 2]} =>     output: {type: pipelined}",),
            26,
            "stages.joined.partitions",
            "auto | a whole number, 1 or more; the bytes of orders are never known",
        ),
        (
            (
                "    inputs: {cleaned: gather} =>     inputs: {cleaned: forward, lineitem: forward}",
                "work.jobs:top => work.jobs:anything",
            ),
            35,
            "stages.top.inputs.lineitem",
            "forward from 4 partition(s) to auto (joined)",
        ),
    ],
)
def test_what_cannot_be_decided_or_does_not_fit_is_refused(
    project: Project, edits: tuple[str, ...], line: int, field: str, problem: str
) -> None:
    ((given_line, given_field, text),) = project.problems(edited(*AUTO, *edits))
    assert (given_line, given_field) == (line, field)
    assert problem in text
