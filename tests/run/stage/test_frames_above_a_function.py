"""How far a stage's function is from whoever starts its region: each frame of ours between them has to do something."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import FunctionFailed
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.local_run import run_locally
from stagehold.run.here.region import run_region
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import PROJECT
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.spark

OPERATOR = 1  # its `execute`, which calls `run_region`: see tests/airflow/dag/test_region_operator.py
MOST = 10

JOBS = """
import traceback

from stagehold import stage


@stage
def numbers(ctx, source):
    raise LookupError([f"{one.filename} {one.name}" for one in traceback.extract_stack()])
"""


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def frames_of(raised: pytest.ExceptionInfo[FunctionFailed]) -> list[str]:
    """Functions of ours that were under way when the stage's function was called, outermost first."""
    assert isinstance(raised.value.__cause__, LookupError)
    (frames,) = raised.value.__cause__.args
    library = str(PROJECT / "include" / "stagehold")
    return [frame.rpartition(" ")[2] for frame in frames if frame.startswith(library) and "<" not in frame]


def asked(pipeline: Pipeline) -> RunRequest:
    return RunRequest(pipeline, f"p/{uuid4()}", "i", {})


def test_few_frames_are_between_a_task_and_its_function(project: SmallProject) -> None:
    pipeline = project.pipeline("p", {"numbers": {"source": NUMBERS}})
    (region,) = stage_regions(pipeline)
    with pytest.raises(FunctionFailed) as raised:
        run_region(RegionTask(asked(pipeline), region, "o", "cli"), project.settings, print)
    frames = frames_of(raised)
    assert frames[0] == "run_region"
    assert OPERATOR + len(frames) <= MOST, frames


def test_a_run_in_this_process_adds_its_restarts_alone(project: SmallProject) -> None:
    pipeline = project.pipeline("p", {"numbers": {"source": NUMBERS}}, restart={"strategy": "none"})
    with pytest.raises(FunctionFailed) as raised:
        run_locally(asked(pipeline), project.settings, print)
    frames = frames_of(raised)
    assert frames[: frames.index("run_region")] == ["run_locally", "_run_with_restarts"], frames
