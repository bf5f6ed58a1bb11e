"""An interval that goes on with one that has not run is refused before anything is taken, computed or recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.ledger.samples import RUN_ENDS, record, run
from tests.run.small_project import NUMBERS, SmallProject
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import EarlierMissing, SparkUnavailable
from stagehold.model.backfill import BackfillChoice
from stagehold.model.records import AttemptState, Cell, RunState
from stagehold.plan.split.regions import stage_regions
from stagehold.run.backfill.backfill_planning import plan_backfill
from stagehold.run.here.local_run import run_locally
from stagehold.run.here.region import run_region
from stagehold.run.planning.earlier_states import KnownIntervals, earlier_states, later_intervals
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask

JOBS = """
from stagehold import stage

@stage
def numbers(ctx, source): ...
@stage
def tidy(ctx, numbers): ...
@stage
def totals(ctx, tidy): ...
"""
STAGES = {
    "numbers": {"source": {**NUMBERS, "incremental": True}, "output": {"type": "blocking"}},
    "tidy": {"inputs": {"numbers": "forward"}, "output": {"type": "blocking"}},
    "totals": {
        "inputs": {"tidy": {"exchange": "keyed", "key": "number"}},
        "partitions": 2,
        "state": {"seen": {"key": "number", "columns": {"number": "bigint"}}},
    },
}
RAN, MISSING, EARLY = "2026-11-01", "2026-11-02", "2026-11-04"
NO_SERVER = "sc://localhost:1"


@pytest.fixture
def project(tmp_path):
    return SmallProject.make(tmp_path, NO_SERVER, JOBS)


@pytest.fixture
def pipeline(project):
    declared = project.pipeline("sums", STAGES, schedule="@daily", restart={"strategy": "none"})
    with project.ledger() as ledger:
        lease = ledger.leases.acquire("x", "me", 60)
        ledger.partitions.record([record(0, cell=Cell("sums", declared.stage("totals").id, RAN))], lease)
    return declared


def first_task(pipeline) -> RegionTask:
    (region,) = (region for region in stage_regions(pipeline) if region.name == "numbers")
    return RegionTask(RunRequest(pipeline, "early", EARLY, {}), region, "somebody", "airflow")


def attempts(project, pipeline):
    with project.ledger() as ledger:
        assert ledger.positions.taken_by(Cell("sums", pipeline.stage("numbers").id, EARLY)) is None
        return ledger.attempts.of_run("early")


def test_a_run_begins_nothing(project, pipeline):
    with pytest.raises(EarlierMissing, match=f"{MISSING} has to run first.*--interval {MISSING}"):
        run_locally(RunRequest(pipeline, "early", EARLY, {}), project.settings, print)
    assert attempts(project, pipeline) == ()


def test_a_plan_shows_what_is_blocked_and_ends_as_the_run_would(project, pipeline, tmp_path, monkeypatch):
    stages = {name: {"job": f"{tmp_path.name}:{name}", **fields} for name, fields in STAGES.items()}
    (tmp_path / "pipelines").mkdir()
    declaration = {"pipeline": "sums", "schedule": "@daily", "stages": stages}
    (tmp_path / "pipelines/sums.yaml").write_text(json.dumps(declaration))
    settings = replace(project.settings, pipelines=str(tmp_path / "pipelines"))
    for name, value in settings.environment.items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(app, ["plan", "sums", "--interval", EARLY])
    assert ended.exit_code == 1
    assert "0 partitions reused, 8 run, 2 blocked" in ended.stdout
    assert f"`stagehold run sums --interval {MISSING}`" in ended.stderr


def test_the_first_task_in_airflow_ends_before_it_takes_anything_of_its_source(project, pipeline):
    with pytest.raises(EarlierMissing, match="has to run first"):
        run_region(first_task(pipeline), project.settings, print)
    assert [attempt.state for attempt in attempts(project, pipeline)] == [AttemptState.FAILED]


def test_a_task_goes_on_where_airflow_itself_holds_back_what_comes_too_early(project, pipeline, monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise SparkUnavailable("the server that the task went on to is gone")

    monkeypatch.setattr("stagehold.run.stage.spark_engine.open_session", gone)
    with pytest.raises(SparkUnavailable):
        run_region(replace(first_task(pipeline), waits=True), project.settings, print)
    with project.ledger() as ledger:
        assert ledger.positions.taken_by(Cell("sums", pipeline.stage("numbers").id, EARLY)) is not None


def test_a_backfill_leaves_it_out_with_the_reason_and_its_first_date_runs_once_the_gap_is_in_it(project, pipeline):
    with project.ledger() as ledger:
        alone = plan_backfill(BackfillChoice(EARLY, EARLY), pipeline, ledger, project.settings)
        filled = plan_backfill(BackfillChoice(MISSING, EARLY), pipeline, ledger, project.settings)
    assert (alone.runs, alone.refusal) == (0, "There is nothing to run. 1 of 1 intervals cannot be planned.")
    assert f"{MISSING} has to run first" in str(alone.intervals[0].problem)
    assert [interval.problem for interval in filled.intervals] == [None] * 3


@pytest.fixture
def first_failed(project):
    """A pipeline of which one interval was asked for, failed, and left nothing."""
    with project.ledger() as ledger:
        ledger.runs.start(replace(run("first"), pipeline="sums", interval=RAN))
        ledger.runs.apply("first", *RUN_ENDS[RunState.FAILED])

    def declared(**fields):
        stages = {**STAGES, "totals": {**STAGES["totals"], **fields}}
        return project.pipeline("sums", stages, schedule="@daily", restart={"strategy": "none"})

    return declared


def gap(project, pipeline, interval):
    with project.ledger() as ledger:
        (earlier,) = earlier_states(pipeline, interval, KnownIntervals(ledger), None).values()
    return earlier.gap and earlier.gap.interval


def test_an_interval_that_failed_before_it_left_anything_is_not_passed_over(project, first_failed):
    with pytest.raises(EarlierMissing, match=f"{RAN} has to run first.*`state_begins`"):
        run_locally(RunRequest(first_failed(), "early", MISSING, {}), project.settings, print)
    assert attempts(project, first_failed()) == ()
    with project.ledger() as ledger:
        ledger.runs.start(replace(run("second"), pipeline="sums", interval=RAN))
        ledger.runs.apply("second", *RUN_ENDS[RunState.FINISHED])
    assert gap(project, first_failed(), MISSING) is None, "a stage that was declared later begins where it runs"


@pytest.mark.parametrize(
    ("begins", "interval", "missing"),
    [
        (MISSING, MISSING, None),
        (MISSING, EARLY, MISSING),
        (EARLY, MISSING, RAN),
        (RAN, MISSING, RAN),
    ],
)
def test_where_state_begins_is_declared_what_is_between_has_to_run(project, first_failed, begins, interval, missing):
    assert gap(project, first_failed(state_begins=begins), interval) == missing


@pytest.mark.parametrize(
    ("begins", "interval", "before", "after"),
    [(EARLY, EARLY, MISSING, None), (EARLY, "2026-11-03", MISSING, None), (RAN, EARLY, MISSING, MISSING)],
)
def test_what_was_kept_before_state_begins_anew_is_of_no_meaning(project, pipeline, begins, interval, before, after):
    again = project.pipeline(
        "sums", {**STAGES, "totals": {**STAGES["totals"], "state_begins": begins}}, schedule="@daily"
    )
    assert gap(project, pipeline, interval) == before
    assert gap(project, again, interval) == (after if interval == EARLY else before)
    with project.ledger() as ledger:
        lease = ledger.leases.acquire("y", "me", 60)
        ledger.partitions.record([record(0, cell=Cell("sums", again.stage("totals").id, "2026-11-05"))], lease)
        later = ("2026-11-05",)
        assert later_intervals(pipeline, pipeline.stage("totals"), RAN, ledger) == later
        assert later_intervals(again, again.stage("totals"), RAN, ledger) == (later if begins == RAN else ())
