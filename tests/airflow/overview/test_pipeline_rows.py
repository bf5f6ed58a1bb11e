"""How a pipeline stands: one table, each row asked for its standing and for its newest interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.overview.overview_responses import NextStep, PipelineKind
from stagehold.airflow.overview.pipeline_rows import (
    LATE,
    MOST_MARKS,
    DagNow,
    PipelineFacts,
    hidden_brief,
    hidden_row,
    interval_marks,
    pipeline_brief,
    pipeline_row,
    shown_runs,
)
from stagehold.model.records import Run, RunState
from stagehold.model.standing import DeclaredStage, Need, PartitionState, RunWord
from stagehold.model.standing import PipelineStanding as Standing
from stagehold.model.standing import Standing as IntervalStanding
from stagehold.spec.loading.loader import build_pipeline

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 2}
PIPELINE = build_pipeline(
    {"pipeline": "sales", "schedule": "0 2 * * *", "stages": {"orders": {"job": "jobs.tpch:orders", "source": SOURCE}}},
    project=Path(),
    suites=Path(),
)
PLACE = DagPlace(PIPELINE.name)
DECLARED = DeclaredStage("orders", 2, result=True)
ALL = {PartitionState.CONSUMABLE: 2}
SOME = {PartitionState.CONSUMABLE: 1, PartitionState.BLOCKED: 1}
GONE = {PartitionState.RELEASED: 2}
ONE = {PartitionState.CONSUMABLE: 1}
RESTING, LATE_DAG = DagNow(False, NOW + timedelta(hours=1), 0), DagNow(False, NOW - LATE - timedelta(seconds=1), 0)


def run(day: int, state: RunState = RunState.FINISHED, *, launcher: str = "airflow", begun: int | None = None) -> Run:
    interval = f"2026-11-{day:02}"
    started = datetime(2026, 11, begun or day, 3, tzinfo=UTC)
    return Run(f"sales/{interval}-{begun or day}", "sales", interval, launcher, state, started)


@dataclass(frozen=True)
class Case:
    id: str
    runs: tuple[Run, ...]  # the newest first
    expected: Standing
    newest: tuple[str, RunWord] | None
    counts: dict = field(default_factory=lambda: ALL)
    airflow: dict[str, str] = field(default_factory=dict)
    dag: DagNow = RESTING
    at_work: frozenset = frozenset()


SUCCEEDED = ("2026-11-24", RunWord.SUCCESS)
BY_COMMAND = run(24, RunState.RUNNING, launcher="cli")
CASES = [
    Case("nothing ever ran", (), Standing.NEVER_RUN, None, {}),
    Case("nothing ever ran, though it should have", (), Standing.OVERDUE, None, {}, dag=LATE_DAG),
    Case("all is there", (run(24),), Standing.CURRENT, SUCCEEDED),
    Case("a partition is blocked", (run(24),), Standing.FAILING, SUCCEEDED, SOME),
    Case("the result was released", (run(24),), Standing.FAILING, SUCCEEDED, GONE),
    Case("it was marked as a success half-way", (run(24),), Standing.FAILING, SUCCEEDED, ONE),
    Case("nothing was recorded", (run(24),), Standing.FAILING, SUCCEEDED, {}),
    Case("its time is over", (run(24),), Standing.OVERDUE, SUCCEEDED, dag=LATE_DAG),
    Case(
        "its time is over, but it is paused",
        (run(24),),
        Standing.CURRENT,
        SUCCEEDED,
        dag=DagNow(True, LATE_DAG.due, 0),
    ),
    Case("its time came just now", (run(24),), Standing.CURRENT, SUCCEEDED, dag=DagNow(False, NOW - LATE, 0)),
    Case("without a schedule", (run(24),), Standing.CURRENT, SUCCEEDED, dag=DagNow(False, None, 0)),
    Case(
        "Airflow's word counts for its own runs",
        (run(24, RunState.RUNNING),),
        Standing.FAILING,
        ("2026-11-24", RunWord.FAILED),
        airflow={"sales/2026-11-24-24": "failed"},
    ),
    Case(
        "Airflow has a run that the ledger does not know",
        (),
        Standing.RUNNING,
        None,
        {},
        dag=DagNow(False, None, 1),
    ),
    Case("a run that Airflow has forgotten", (run(24),), Standing.CURRENT, SUCCEEDED),
    Case(
        "a command that is at work",
        (BY_COMMAND,),
        Standing.RUNNING,
        ("2026-11-24", RunWord.RUNNING),
        at_work=frozenset({("sales", "2026-11-24")}),
    ),
    Case("a command that died", (BY_COMMAND,), Standing.FAILING, ("2026-11-24", RunWord.SILENT)),
    Case("a cancelled run", (run(24, RunState.CANCELED),), Standing.FAILING, ("2026-11-24", RunWord.CANCELED)),
    Case(
        "the newest run of an interval counts",
        (run(24), run(24, RunState.FAILED, begun=23)),
        Standing.CURRENT,
        SUCCEEDED,
    ),
    Case(
        "an old interval was run again, and failed",
        (run(20, RunState.FAILED, begun=25), run(24)),
        Standing.FAILING,
        SUCCEEDED,
    ),
    Case(
        "one interval goes on while another needs somebody",
        (BY_COMMAND, run(20, RunState.FAILED)),
        Standing.FAILING,
        ("2026-11-24", RunWord.RUNNING),
        at_work=frozenset({("sales", "2026-11-24")}),
    ),
    Case("a run waits to be gone on with", (run(24), run(20, RunState.SUSPENDED)), Standing.FAILING, SUCCEEDED),
]


def facts_of(case: Case) -> PipelineFacts:
    standing = IntervalStanding.of(DECLARED, case.counts)
    standings = {one.interval: standing for one in case.runs}
    shown = shown_runs(case.runs)
    return PipelineFacts(PIPELINE, PLACE, case.dag, case.runs, shown, case.airflow, case.at_work, standings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_how_it_stands(case):
    row = pipeline_row(facts_of(case), NOW)
    assert row.standing is case.expected
    assert (row.newest and (row.newest.mark.interval, row.newest.mark.word)) == case.newest
    assert (row.due is not None) == (case.dag is LATE_DAG)
    assert (row.standing is Standing.FAILING) == any(one.need for one in row.marks)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_decides_about_its_place_says_the_same_as_its_row(case):
    facts = replace(facts_of(case), waived={("sales", "2026-11-24")})
    row, brief = pipeline_row(facts, NOW), pipeline_brief(facts, NOW)
    needs = [one for one in row.marks if one.need]
    kinds = {
        PipelineKind(row.standing.value): True,
        PipelineKind.RUNNING: row.active > 0,
        PipelineKind.BLOCKED: any(one.need is Need.BLOCKED for one in needs),
        PipelineKind.WAIVED: any(one.waived for one in row.marks),
        PipelineKind.OVERDUE: row.due is not None,
    }
    assert (brief.name, brief.standing, brief.tags, brief.owners) == (row.name, row.standing, row.tags, row.owners)
    assert brief.kinds == {kind for kind, is_so in kinds.items() if is_so}
    assert brief.began_at == max((one.started_at for one in row.marks), default=None)
    assert brief.needed_at == max((one.started_at for one in needs), default=None)


BY_AIRFLOW = {"sales/2026-11-24-24": "success"}
FAILED = {"sales/2026-11-24-24": "failed"}
WHY = "orders: ValueError: no such column\n  at line 3"


@pytest.mark.parametrize(
    ("case", "failure", "expected"),
    [
        (Case("whole", (run(24),), Standing.CURRENT, None), "", (None, None, None)),
        (
            Case("not whole", (run(24),), Standing.FAILING, None, ONE, BY_AIRFLOW),
            "",
            (Need.INCOMPLETE, "1 of 2 consumable, 1 missing", NextStep.RESUME),
        ),
        (
            Case("blocked, and so its run failed", (run(24),), Standing.FAILING, None, SOME, FAILED),
            WHY,
            (Need.BLOCKED, "1 of 2 consumable, 1 blocked", NextStep.LOOK),
        ),
        (
            Case("failed", (run(24),), Standing.FAILING, None, ONE, FAILED),
            WHY,
            (Need.FAILED, "orders: ValueError: no such column; 1 of 2 consumable, 1 missing", NextStep.RESUME),
        ),
        (
            Case("a command's run failed", (run(24, RunState.FAILED, launcher="cli"),), Standing.FAILING, None, ONE),
            "",
            (Need.FAILED, "1 of 2 consumable, 1 missing", NextStep.RUN),
        ),
        (
            Case("suspended", (run(24, RunState.SUSPENDED, launcher="cli"),), Standing.FAILING, None, ONE),
            WHY,
            (Need.SUSPENDED, "1 of 2 consumable, 1 missing", NextStep.RUN),
        ),
    ],
    ids=lambda case: getattr(case, "id", None),
)
def test_what_an_interval_needs_why_and_what_there_is_to_press(case, failure, expected):
    (mark,) = interval_marks(replace(facts_of(case), failures={one.run_id: failure for one in case.runs}))
    assert (mark.need, mark.reason, mark.step) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (ALL, ("complete", 2, 2, "2 of 2 consumable")),
        (SOME, ("incomplete", 1, 2, "1 of 2 consumable, 1 blocked")),
        ({}, (None, 0, 2, "0 of 2 consumable, 2 missing")),
        (ONE, ("incomplete", 1, 2, "1 of 2 consumable, 1 missing")),
        ({PartitionState.BLOCKED: 1}, ("empty", 0, 2, "0 of 2 consumable, 1 blocked, 1 missing")),
    ],
)
def test_how_much_of_the_newest_interval_is_there(counts, expected):
    newest = pipeline_row(facts_of(Case("", (run(24),), Standing.CURRENT, None, counts)), NOW).newest
    assert newest is not None
    assert (newest.state, newest.done, newest.partitions, newest.text) == expected


def test_the_newest_intervals_are_in_the_order_of_their_dates():
    runs = tuple(run(day, begun=24) for day in range(20, 0, -1))
    marks = interval_marks(PipelineFacts(PIPELINE, PLACE, RESTING, runs, shown_runs(runs), {}, frozenset()))
    assert [mark.interval for mark in marks] == [f"2026-11-{day:02}" for day in range(20 - MOST_MARKS + 1, 21)]


def test_of_a_pipeline_whose_runs_are_hidden_nothing_is_told():
    row = hidden_row(PIPELINE, RESTING, PLACE)
    assert (row.standing, row.newest, row.marks, row.active, row.paused) == (
        Standing.HIDDEN,
        None,
        (),
        0,
        False,
    )
    assert hidden_brief(PIPELINE, RESTING).kinds == {PipelineKind.HIDDEN}
