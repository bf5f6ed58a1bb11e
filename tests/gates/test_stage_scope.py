"""What does not go together with a gate that judges all of a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagehold.errors import InvalidSpec
from stagehold.gates.suite import Expectation, Scope, Suite, check_scope
from stagehold.spec.loading.loader import build_pipeline

COUNT = "expect_table_row_count_to_equal"
SUITE = Suite("own", (Expectation(COUNT, {"value": 1}, line=3, scope=Scope.STAGE),), "own.yaml")
JOBS = """\
from stagehold import stage


@stage
def made(ctx, source):
    return source


@stage
def reader(ctx, made):
    return made
"""


def pipeline(folder: Path, own: dict[str, Any], reader: dict[str, Any], **fields: Any) -> Any:
    (folder / "scoped.py").write_text(JOBS)
    (folder / "own.yaml").write_text(f"suite: own\nexpectations:\n  - {{type: {COUNT}, value: 1, scope: stage}}\n")
    source = {"kind": "parquet", "path": "raw/*.parquet", "splits": 4}
    stages = {
        "made": {"job": "scoped:made", "source": source, "gate": "own", **own},
        "reader": {"job": "scoped:reader", "inputs": {"made": {"exchange": "forward"}}, **reader},
    }
    return build_pipeline({"pipeline": "p", "stages": stages, **fields}, project=folder, suites=folder)


@pytest.mark.parametrize(
    ("own", "fields", "problem"),
    [
        ({"max_parallel_tasks": 2}, {}, "max_parallel_tasks: 2"),
        ({"max_parallel_tasks": 2}, {"speculation": {"least_seconds": 1}}, "speculation"),
        ({}, {"failover": "full"}, "failover: full"),
        ({"output": {"type": "blocking", "committer": "delta_spark"}}, {}, "committer: delta_spark"),
        (
            {"source": {"kind": "parquet", "path": "raw/*.parquet", "splits": 4, "incremental": True}},
            {},
            "an incremental source",
        ),
        ({"co_location": "one"}, {}, "reader, which reads it in the same task,"),
    ],
)
def test_a_stage_that_cannot_be_judged_as_a_whole_is_refused_with_file_line_and_field(tmp_path, own, fields, problem):
    reader = {"co_location": "one"} if "co_location" in own else {}
    found = pipeline(tmp_path, own, reader, **fields)
    with pytest.raises(InvalidSpec) as refused:
        check_scope(SUITE, found.stage("made"), found)
    assert f"own.yaml:3: scope: got stage, with {problem}" in str(refused.value)
    assert "stage made of" in str(refused.value)


def test_all_other_stages_may_be_judged_as_a_whole(tmp_path):
    found = pipeline(tmp_path, {}, {})
    check_scope(SUITE, found.stage("made"), found)
    strict = pipeline(tmp_path, {}, {}, failover="full")
    check_scope(SUITE.of_partitions, strict.stage("made"), strict)
