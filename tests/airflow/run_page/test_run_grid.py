"""What the run page is told, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.airflow.run_page.made_run_facts import (
    BLOCKED,
    HEAL,
    NOW,
    REUSE,
    RUN_IT,
    attempt,
    facts,
    record,
    run_grid,
)

from stagehold.airflow.run_page.run_grid import resume_preview, seen_by
from stagehold.airflow.runs.task_clearing import DagTask
from stagehold.errors.spec_errors import CodeUnusable
from stagehold.model.choices import Waiver
from stagehold.model.partition_set import Share
from stagehold.model.records import AttemptState, Cell, GateResult, RunState
from stagehold.model.standing import CellState, PartitionState
from stagehold.plan.resume.decisions import Action, ResumePlan


def test_counts_and_headline_take_a_partition_that_runs_again_as_not_done():
    grid = run_grid(facts([REUSE, RUN_IT, RUN_IT], [record(0), record(1)]))
    assert (grid.consumable, grid.partitions, grid.headline) == (
        1,
        3,
        "Failed at joined: 1 of 3 partitions are consumable, 1 more will run again",
    )


def test_a_run_that_was_suspended_did_not_fail():
    ended = attempt(1, AttemptState.CANCELED, "suspended")
    grid = run_grid(facts([REUSE, RUN_IT], [record(0)], attempts=(ended,), ledger_state=RunState.SUSPENDED))
    assert [cell.state for cell in grid.stages[0].cells] == [CellState.CONSUMABLE, CellState.WAITING]
    assert (grid.failures, grid.headline) == ((), "Suspended: 1 of 2 partitions are consumable")
    assert [line.state for line in grid.attempts] == [AttemptState.CANCELED]


@pytest.mark.parametrize(
    ("state", "known", "expected"),
    [
        ("failed", RunState.CANCELED, "Cancelled at joined: "),
        ("failed", RunState.FAILED, "Failed at joined: "),
        ("running", RunState.SUSPENDED, "Running: "),
        ("queued", RunState.CANCELED, "Running: "),
        ("success", RunState.FINISHED, "Success, but not whole: "),
    ],
)
def test_the_headline_says_how_the_run_ended(state, known, expected):
    made = facts([RUN_IT], [], state, ledger_state=known)
    assert run_grid(made).headline.startswith(expected)
    assert seen_by(run_grid(made), made.dag_run, may_resume=True, may_waive=True).headline.startswith(expected)


def test_a_run_that_was_marked_as_a_success_is_not_whole():
    grid = run_grid(facts([REUSE] * 12 + [RUN_IT] * 4, [record(number) for number in range(12)], "success"))
    assert grid.headline == "Success, but not whole: 12 of 16 partitions are consumable"
    assert not grid.whole


def test_a_run_is_whole_if_partitions_would_run_again_and_not_if_data_is_gone():
    stale, gone = (run_grid(facts([REUSE, one], [record(0), record(1)], "success")) for one in (RUN_IT, HEAL))
    assert (stale.whole, stale.headline) == (True, "Success: 1 of 2 partitions are consumable, 1 more will run again")
    assert (gone.whole, gone.headline) == (False, "Success, but not whole: 1 of 2 partitions are consumable")


def test_released_partitions_count_as_done():
    grid = run_grid(facts([REUSE, REUSE], [record(0), record(1, PartitionState.RELEASED)], "success"))
    assert (grid.consumable, grid.released, grid.partitions) == (1, 1, 2)
    assert grid.headline == "Success, but not whole: 1 of 2 partitions are consumable, 1 released"


@pytest.mark.parametrize(
    ("state", "start"), [("running", "Running: "), ("queued", "Running: "), ("success", "Success: ")]
)
def test_the_headline_begins_with_what_happened(state, start):
    assert run_grid(facts([REUSE], [record(0)], state)).headline == f"{start}1 of 1 partitions are consumable"


def test_a_run_whose_code_is_broken_cannot_be_resumed_and_the_page_says_why():
    broken = CodeUnusable("pipe", {"joined": ["jobs/x.py:1: Python cannot read it"]})
    preview = resume_preview(facts([RUN_IT], [], refusal=broken))
    assert (preview.refusal, preview.tasks, preview.run) == (str(broken), (), 1)


def test_partitions_with_one_reason_are_one_group():
    groups = run_grid(facts([REUSE, RUN_IT, RUN_IT], [record(0)])).stages[0].groups
    assert [(group.action, group.count, group.partitions) for group in groups] == [(REUSE, 1, "0"), (RUN_IT, 2, "1-2")]


def test_a_gate_failure_is_shown_while_its_partition_is_blocked():
    said = tuple(
        GateResult(Cell("pipe", "joined-uid", "day"), index, "attempt", "joined", "rows > 0", False, "0", NOW)
        for index in (0, 1)
    )
    records, failed = [record(0, PartitionState.BLOCKED), record(1)], {"joined-uid": said}
    grid = run_grid(facts([BLOCKED, REUSE], records, gate_failures=failed))
    assert [(failure.stage, failure.partitions, failure.observed) for failure in grid.gate_failures] == [
        ("joined", ((0, 0),), "0")
    ]


def test_a_partition_that_somebody_waived_says_so():
    records = [record(0, refused=("rows > 0",)), record(1, refused=("rows > 0",), fingerprint="other"), record(2)]
    word = Waiver("pipe", "day", "joined-uid", 0, "rows > 0", "", "ann", "known", NOW)
    grid = run_grid(facts([REUSE, Action.JUDGE, REUSE], records, waivers={"joined": (word,)}))
    assert [cell.waived for cell in grid.stages[0].cells] == [True, False, False]


@pytest.mark.parametrize(
    ("newest", "run_state", "expected"),
    [
        (attempt(2, AttemptState.FAILED, "it broke"), "failed", "it broke"),
        (attempt(2, AttemptState.FAILED, "it broke"), "running", "it broke"),
        (attempt(2, AttemptState.FINISHED), "success", None),
        (attempt(2, AttemptState.RUNNING), "running", None),
        (attempt(2, AttemptState.RUNNING), "failed", "ended without a word"),
    ],
)
def test_the_newest_attempt_of_a_region_says_what_went_wrong(newest, run_state, expected):
    grid = run_grid(facts([RUN_IT], [], run_state, attempts=(newest, attempt(1, AttemptState.FAILED, "earlier"))))
    assert [expected in (line.failure or "") for line in grid.failures] == ([True] if expected else [])


def test_the_headline_names_the_share_that_failed():
    made = facts([RUN_IT] * 4, [])
    made.dag_run.tasks = (DagTask("joined", "joined", "failed", 1, Share(2, 3)),)  # type: ignore[misc]
    assert run_grid(made).headline.startswith("Failed at joined[2-3]: ")


def test_a_viewer_sees_the_plan_but_is_told_who_may_resume():
    made = facts([RUN_IT], [])
    preview = seen_by(run_grid(made), made.dag_run, may_resume=False, may_waive=False).resume
    assert preview.refusal is not None
    assert "not clear its tasks" in preview.refusal
    assert [task.task_id for task in preview.tasks] == ["joined"]


def test_a_page_made_while_its_run_went_on_is_shown_as_it_was_until_it_is_made_anew():
    """Not as a success of which something still runs."""
    working = attempt(1, AttemptState.RUNNING)
    kept = run_grid(facts([REUSE, RUN_IT], [record(0)], "running", attempts=(working,)))
    ended = facts([REUSE, REUSE], [record(0), record(1)], "success").dag_run
    shown = seen_by(kept, ended, may_resume=True, may_waive=True)
    assert shown.active
    assert (shown.state, shown.headline) == ("running", "Running: 1 of 2 partitions are consumable")


def test_a_page_made_before_its_run_was_resumed_says_that_it_runs_and_offers_no_second_resume():
    kept = run_grid(facts([REUSE, RUN_IT], [record(0)], "failed"))
    shown = seen_by(kept, facts([REUSE, RUN_IT], [record(0)], "queued").dag_run, may_resume=True, may_waive=True)
    assert shown.active
    assert shown.headline == "Running: 1 of 2 partitions are consumable"
    assert "still queued" in (shown.resume.refusal or "")


def test_a_refused_resume_says_why_in_the_preview():
    assert "still running" in (run_grid(facts([RUN_IT], [], "running")).resume.refusal or "")


def test_a_page_stays_small_however_many_partitions_and_waves_a_run_has():
    many = 25_000
    records = [record(one, wave=one // 50, recorded_at=NOW + timedelta(seconds=one)) for one in range(many)]
    worked = [replace(attempt(3, AttemptState.FINISHED), attempt_id="attempt")]
    page = run_grid(facts([REUSE] * many, records, attempts=tuple(worked)))
    (row,), (line,) = page.stages, page.attempts
    assert (row.cells, len(row.strip), len(line.waves)) == ((), 100, 56)
    assert len(page.model_dump_json()) < 20_000


def test_a_partition_that_runs_again_though_it_is_consumable_is_counted_for_the_confirmation():
    stale = facts([RUN_IT, RUN_IT, REUSE], [record(0), record(2, seconds=30.0)])
    decisions = tuple(
        replace(one, record=found)
        for one, found in zip(stale.plan.decisions, (record(0), None, record(2, seconds=30.0)), strict=True)
    )
    preview = resume_preview(replace(stale, plan=ResumePlan(decisions, {"joined": decisions})))
    assert (preview.again, preview.run, preview.saved_seconds) == (1, 2, 30.0)


def test_waves_are_told_with_the_attempt_that_recorded_them():
    worked = replace(attempt(3, AttemptState.FINISHED), attempt_id="attempt")
    records = [record(0), record(1), record(2, wave=2, recorded_at=NOW + timedelta(seconds=5))]
    (line,) = run_grid(facts([REUSE] * 3, records, attempts=(worked,))).attempts
    assert [(one.stage, one.wave, one.partitions) for one in line.waves] == [("joined", 1, 2), ("joined", 2, 1)]


def test_the_preview_says_what_was_released_and_is_needed():
    made = facts([HEAL, HEAL, RUN_IT], [])
    gone = [record(number, PartitionState.RELEASED, seconds=20.0) for number in (0, 1)]
    decisions = [replace(one, record=was) for one, was in zip(made.plan.decisions, (*gone, None), strict=True)]
    planned = replace(made, plan=ResumePlan(tuple(decisions), {"joined": tuple(decisions)}))
    assert resume_preview(planned).released == "joined of day was released: 2 partitions, about 40 s"
    assert resume_preview(made).released is None
