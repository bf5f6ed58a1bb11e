"""Which regions may be split over tasks and which stages may be co-located."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.errors import InvalidSpec
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import asks_for_splits, region_shares
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

JOBS = "def source(ctx, source): ...\ndef one(ctx, a): ...\ndef two(ctx, b): ...\ndef both(ctx, a, b): ...\n"
KEYED = {"exchange": "keyed", "key": "k"}
PIPELINED = {"type": "pipelined"}


def build(folder: Path, **stages: dict) -> Pipeline:
    (folder / "work.py").write_text(JOBS)
    sourced = {"job": "work:source", "source": {"kind": "parquet", "path": "x", "splits": 8}}
    given = {name: {**({} if "inputs" in stage else sourced), **stage} for name, stage in stages.items()}
    return build_pipeline({"pipeline": "small", "stages": given}, project=folder, suites=folder)


def tasks(pipeline: Pipeline) -> dict[str, str]:
    return {
        region.name: " ".join(str(share) for share in region_shares(pipeline, region))
        for region in stage_regions(pipeline)
    }


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param({"a": {}}, {"a": "None"}, id="one task by default"),
        pytest.param({"a": {"max_parallel_tasks": 2}}, {"a": "0-3 4-7"}, id="a stage of its own"),
        pytest.param(
            {"a": {}, "b": {"job": "work:one", "inputs": {"a": KEYED}, "partitions": 4, "max_parallel_tasks": 4}},
            {"a": "None", "b": "0-0 1-1 2-2 3-3"},
            id="what is read from outside may be shuffled",
        ),
        pytest.param(
            {"a": {"output": PIPELINED}, "b": {"job": "work:one", "inputs": {"a": "forward"}, "max_parallel_tasks": 2}},
            {"a__b": "0-3 4-7"},
            id="one of several fused stages speaks for all",
        ),
        pytest.param(
            {"a": {"co_location": "here"}, "b": {"job": "work:one", "inputs": {"a": "forward"}, "co_location": "here"}},
            {"a__b": "None"},
            id="co-located stages are one task though the output is blocking",
        ),
        pytest.param(
            {"a": {"co_location": "x", "max_parallel_tasks": 2}, "b": {"co_location": "x"}},
            {"a__b": "0-3 4-7"},
            id="co-located stages that do not read each other",
        ),
    ],
)
def test_a_region_is_split_into_the_shares_that_were_asked_for(tmp_path, stages, expected):
    assert tasks(build(tmp_path, **stages)) == expected


@pytest.mark.parametrize(
    ("stages", "field", "text"),
    [
        pytest.param(
            {
                "a": {"co_location": "x"},
                "b": {"job": "work:one", "inputs": {"a": KEYED}, "partitions": 8, "co_location": "x"},
            },
            "stages.b.co_location",
            "x, but b reads a keyed; allowed: only where all stages that run together are cut alike",
            id="a shuffle between co-located stages",
        ),
        pytest.param(
            {
                "a": {"co_location": "x", "source": {"kind": "parquet", "path": "x", "splits": 4}},
                "b": {"co_location": "x"},
            },
            "stages.a.co_location",
            "a has 4 and b has 8 partitions",
            id="different numbers of partitions",
        ),
        pytest.param(
            {"a": {}, "b": {"job": "work:one", "inputs": {"a": KEYED}, "partitions": "auto", "max_parallel_tasks": 2}},
            "stages.b.max_parallel_tasks",
            "2 with partitions: auto; allowed: a fixed number of partitions",
            id="a number of partitions that the run decides",
        ),
        pytest.param(
            {
                "a": {"output": PIPELINED, "max_parallel_tasks": 2},
                "b": {"job": "work:one", "inputs": {"a": "forward"}, "max_parallel_tasks": 4},
            },
            "stages.a.max_parallel_tasks",
            "one number for all stages that run together: a, b",
            id="different numbers of tasks",
        ),
    ],
)
def test_what_cannot_be_cut_alike_is_refused(tmp_path, stages, field, text):
    with pytest.raises(InvalidSpec) as refused:
        build(tmp_path, **stages)
    assert any(
        problem.field == field and text in f"{problem.given}; allowed: {problem.allowed}"
        for problem in refused.value.problems
    )


ASKED = {"kind": "parquet", "path": "x", "splits": {"count": 8, "assignment": "dynamic"}}
LISTED = {"kind": "parquet", "splits": {"files": [f"x/{part}.parquet" for part in range(8)], "assignment": "dynamic"}}


@pytest.mark.parametrize(
    ("source", "asks"),
    [(ASKED, True), (LISTED, True), (ASKED | {"splits": {"count": 8, "assignment": "static"}}, False)],
)
def test_tasks_ask_for_the_splits_of_a_source_whose_author_wants_that(tmp_path, source, asks):
    pipeline = build(tmp_path, a={"source": source, "max_parallel_tasks": 2})
    assert tasks(pipeline) == {"a": "0-3 4-7"}
    assert [asks_for_splits(pipeline, region) for region in stage_regions(pipeline)] == [asks]
    assert type(pipeline).model_validate(pipeline.model_dump(mode="json")) == pipeline


def test_splits_that_no_task_could_ask_for_are_refused(tmp_path):
    with pytest.raises(InvalidSpec) as refused:
        build(tmp_path, a={"source": ASKED})
    (problem,) = refused.value.problems
    assert problem.field == "stages.a.source.splits"
    assert "only with max_parallel_tasks: 2 or more" in problem.allowed


def test_how_tasks_come_by_splits_is_in_no_key(tmp_path):
    static = build(tmp_path, a={"source": ASKED | {"splits": 8}, "max_parallel_tasks": 2}).stage("a")
    asked = build(tmp_path, a={"source": ASKED, "max_parallel_tasks": 2}).stage("a")
    assert asked.source
    assert asked.source.asked_for
    assert asked.model_copy(update={"source": static.source}) == static
