"""What `stagehold run` says and refuses before anything of a run begins."""

from __future__ import annotations

import pytest
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.errors import ScheduleRefused, StageholdError
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings

JOBS = """
def a(ctx, source): ...
def b(ctx, a): ...
"""
NO_SERVER = "sc://localhost:1"


def said_by(project, mode, kind):
    """What a run said until it failed, since its source is gone."""
    stages = {
        "a": {"source": NUMBERS, "output": {"type": kind}},
        "b": {"inputs": {"a": {"exchange": "keyed", "key": "number"}}, "partitions": 4},
    }
    pipeline = project.pipeline("p", stages, schedule_mode=mode, restart={"strategy": "none"})
    said = []
    with pytest.raises(StageholdError) as failed:
        run_locally(RunRequest(pipeline, "run", INTERVAL, {}), project.settings, said.append)
    return said, failed.value


@pytest.fixture
def project(tmp_path):
    (tmp_path / tmp_path.name).with_suffix(".py").write_text(JOBS)
    return SmallProject(
        Settings(home=str(tmp_path), project=str(tmp_path), suites=str(tmp_path), spark_remote=NO_SERVER)
    )


def test_an_eager_pipeline_runs_task_after_task_and_the_run_says_so(project):
    said, failure = said_by(project, "eager", "blocking")
    assert said[0] == (
        "schedule_mode eager starts all tasks at once, which --parallel 2 does here; with --parallel 1 they follow "
        "each other"
    )
    assert not isinstance(failure, ScheduleRefused)


def test_a_lazy_pipeline_is_as_it_is_declared(project):
    said, _ = said_by(project, "lazy_from_sources", "blocking")
    assert not any("schedule_mode" in line for line in said)


def test_what_cannot_run_slot_by_slot_is_refused_before_the_run_begins(project):
    said, failure = said_by(project, "lazy_from_sources_with_batch_slot_request", "pipelined")
    assert isinstance(failure, ScheduleRefused)
    assert not said
    assert not project.settings.home_path.joinpath("ledger.db").exists()
