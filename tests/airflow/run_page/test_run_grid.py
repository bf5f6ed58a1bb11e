"""What the run page is told, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.plan.resume.situations import DECISIONS

from stagehold.airflow.run_page.run_facts import RunFacts
from stagehold.airflow.run_page.run_grid import resume_preview, run_page, seen_by
from stagehold.airflow.run_page.run_responses import RunGrid
from stagehold.airflow.runs.task_clearing import DagTask
from stagehold.errors.spec_errors import CodeUnusable
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.partition_set import Share
from stagehold.model.records import (
    UNBEGUN,
    Attempt,
    AttemptState,
    Cell,
    GateResult,
    PartitionRecord,
    Restore,
    RunState,
    Waiver,
)
from stagehold.model.standing import CellState, PartitionState
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline, Stage

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
KEY = ComputeKey("code", "settings", "environment", "params", "inputs")
RUN = "pipe/manual"


def record(partition: int, state: PartitionState = PartitionState.CONSUMABLE, **changes: Any) -> PartitionRecord:
    made = PartitionRecord(
        cell=Cell("pipe", "joined-uid", "day"),
        partition=partition,
        state=state,
        run_id=RUN,
        attempt_id="attempt",
        epoch=3,
        wave=1,
        table="table",
        version=7,
        files=(),
        rows=11,
        fingerprint="",
        compute_key=str(KEY),
        recorded_at=NOW,
    )
    return replace(made, **changes)


def run_grid(made: RunFacts) -> RunGrid:
    grid, _ = run_page(made)
    return grid


def attempt(epoch: int, state: AttemptState, failure: str | None = None) -> Attempt:
    return Attempt(f"attempt-{epoch}", RUN, "pipe", "day", "joined", epoch, state, NOW, failure=failure)


def facts(actions: list[Action], records: list[PartitionRecord], run_state: str = "failed", **changes: Any) -> RunFacts:
    stage = Stage(
        name="joined",
        uid="joined-uid",
        job="jobs.x:joined",
        partitions=len(actions),
        max_parallelism=128,
        gate="joined",
    )
    decisions = tuple(
        DECISIONS[action]("joined", index, because(f"because {action}"), KEY) for index, action in enumerate(actions)
    )
    dag_run = SimpleNamespace(
        dag_id="pipe",
        run_id="manual",
        state=run_state,
        tasks=(DagTask("joined", "joined", run_state),),
        request=SimpleNamespace(
            pipeline=Pipeline(name="pipe", file="pipe.yaml", stages=(stage,)), interval="day", run_id=RUN, restore=None
        ),
    )
    made = RunFacts(
        dag_run=dag_run,  # type: ignore[arg-type]
        regions=(Region("joined", ("joined",), ()),),
        plan=ResumePlan(decisions, {"joined": decisions}),
        recorded={"joined-uid": tuple(records)},
        attempts=(),
        traces={},
        gate_failures={},
    )
    return replace(made, **changes)


REUSE, RUN_IT, HEAL, BLOCKED = Action.REUSE, Action.RUN, Action.HEAL, Action.BLOCKED


@pytest.mark.parametrize(
    ("action", "recorded", "attempts", "run_state", "expected"),
    [
        pytest.param(REUSE, [record(0)], [], "failed", CellState.CONSUMABLE, id="reused"),
        pytest.param(RUN_IT, [record(0)], [], "failed", CellState.STALE, id="stale, still consumable"),
        pytest.param(RUN_IT, [], [], "failed", CellState.WAITING, id="never computed"),
        pytest.param(HEAL, [record(0)], [], "failed", CellState.LOST, id="its data is gone"),
        pytest.param(BLOCKED, [record(0, PartitionState.BLOCKED)], [], "failed", CellState.BLOCKED, id="blocked"),
        pytest.param(
            RUN_IT, [record(0, PartitionState.RELEASED)], [], "failed", CellState.RELEASED, id="released, and stale"
        ),
        pytest.param(REUSE, [record(0, PartitionState.RELEASED)], [], "success", CellState.RELEASED, id="released"),
        pytest.param(RUN_IT, [], [AttemptState.RUNNING], "running", CellState.RUNNING, id="in the hands of an attempt"),
        pytest.param(
            REUSE,
            [record(0)],
            [AttemptState.RUNNING],
            "running",
            CellState.CONSUMABLE,
            id="done by the running attempt",
        ),
        pytest.param(
            RUN_IT, [], [AttemptState.RUNNING], "failed", CellState.FAILED, id="an attempt that died without a word"
        ),
        pytest.param(RUN_IT, [], [AttemptState.FAILED], "running", CellState.WAITING, id="between two attempts"),
        pytest.param(RUN_IT, [], [AttemptState.FAILED], "failed", CellState.FAILED, id="nobody tries again"),
        pytest.param(RUN_IT, [], [AttemptState.CANCELED], "failed", CellState.FAILED, id="cancelled"),
        pytest.param(RUN_IT, [], [AttemptState.FINISHED], "success", CellState.WAITING, id="not of that attempt"),
        pytest.param(
            RUN_IT,
            [],
            [AttemptState.RUNNING, AttemptState.FAILED],
            "running",
            CellState.WAITING,
            id="only the newest counts",
        ),
    ],
)
def test_a_partition_is_shown_as_what_it_is_now(action, recorded, attempts, run_state, expected):
    made = facts(
        [action], recorded, run_state, attempts=tuple(attempt(epoch, state) for epoch, state in enumerate(attempts, 1))
    )
    (cell,) = run_grid(made).stages[0].cells
    assert (cell.state, cell.action) == (expected, action)


def test_an_attempt_that_waits_for_its_lease_has_nothing_in_hand():
    waiting = replace(attempt(0, AttemptState.SCHEDULED), epoch=UNBEGUN)
    (cell,) = run_grid(facts([RUN_IT], [], "running", attempts=(waiting,))).stages[0].cells
    assert cell.state is CellState.WAITING


def test_a_task_that_failed_before_its_attempt_began_has_failed():
    """As one whom the restart strategy refused, after an attempt that had been killed."""
    killed = replace(attempt(1, AttemptState.FAILED, "killed"), started_at=NOW - timedelta(minutes=1))
    refused = replace(attempt(0, AttemptState.FAILED, "not again"), epoch=UNBEGUN)
    (cell,) = run_grid(facts([RUN_IT], [], "failed", attempts=(killed, refused))).stages[0].cells
    assert cell.state is CellState.FAILED


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


def test_shares_of_a_region_are_shown_apart():
    shares = (
        replace(attempt(1, AttemptState.FAILED, "it broke"), share="0-1"),
        replace(attempt(2, AttemptState.RUNNING), share="2-3"),
    )
    tasks = (
        DagTask("joined", "joined", "up_for_retry", 0, Share(0, 1)),
        DagTask("joined", "joined", "running", 1, Share(2, 3)),
    )
    made = facts([RUN_IT] * 4, [], "running", attempts=shares)
    made.dag_run.tasks = tasks  # type: ignore[misc]
    grid = run_grid(made)
    assert [cell.state for cell in grid.stages[0].cells] == [
        CellState.WAITING,
        CellState.WAITING,
        CellState.RUNNING,
        CellState.RUNNING,
    ]
    assert [(line.region, line.failure) for line in grid.failures] == [("joined[0-1]", "it broke")]
    assert [line.region for line in grid.attempts] == ["joined[0-1]", "joined[2-3]"]
    assert grid.stages[0].task_state == "running"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["success", "success"], "success"),
        (["success", "failed"], "failed"),
        (["running", "failed"], "failed"),
        (["success", None], None),
        (["success", "queued"], "queued"),
        (["upstream_failed", "success"], "upstream_failed"),
    ],
)
def test_a_mapped_task_is_as_good_as_its_worst_instance(states, expected):
    made = facts([RUN_IT] * 2, [], "running")
    made.dag_run.tasks = tuple(DagTask("joined", "joined", state, index) for index, state in enumerate(states))  # type: ignore[misc]
    assert run_grid(made).stages[0].task_state == expected


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


def test_a_stage_without_stored_output_counts_nothing():
    made = facts([RUN_IT], [])
    grid = run_grid(replace(made, plan=replace(made.plan, unstored=frozenset({"joined"}))))
    assert (grid.stages[0].stored, grid.partitions) == (False, 0)


def test_of_an_output_in_its_stored_form_what_nobody_needs_does_not_count():
    grid = run_grid(facts([REUSE, REUSE, RUN_IT], [record(1)]))
    assert [cell.state for cell in grid.stages[0].cells] == [
        CellState.UNNEEDED,
        CellState.CONSUMABLE,
        CellState.WAITING,
    ]
    assert (grid.consumable, grid.partitions) == (1, 2)


def test_a_skewed_partition_says_how_much_larger_it_is() -> None:
    grid = run_grid(facts([REUSE] * 3, [record(0), record(1), record(2, rows=99)]))
    assert [cell.skew for cell in grid.stages[0].cells] == [None, None, "99 rows, 9.0 times the median of 11"]


def restored_facts(records: list[PartitionRecord], **changes: Any) -> RunFacts:
    """Of a run that begins with a checkpoint which another run left."""
    given = facts([REUSE, REUSE], records, **changes)
    restore = Restore(RUN, "asked", None, NOW, snapshot="/lake/checkpoints/0000000001.json")
    request = SimpleNamespace(**{**vars(given.dag_run.request), "restore": restore})
    return replace(given, dag_run=SimpleNamespace(**{**vars(given.dag_run), "request": request}))


def test_partitions_that_are_still_in_the_checkpoint_are_shown_as_they_will_be():
    before = restored_facts([])
    theirs = [record(partition, run_id="theirs") for partition in range(2)]
    taken = tuple(replace(one, restored=True, record=theirs[one.partition]) for one in before.plan.decisions)
    grid = run_grid(replace(before, plan=ResumePlan(taken, {"joined": taken})))
    shown = [(one.state, one.restored, one.run_id) for one in grid.stages[0].cells]
    assert shown == [(CellState.RESTORED, True, "theirs")] * 2
    assert (grid.resume.reuse, grid.resume.restored) == (2, 2)


def test_restored_partitions_are_told_from_computed_ones():
    worked = replace(attempt(3, AttemptState.FINISHED), attempt_id="attempt", restore="asked")
    shown = run_grid(restored_facts([record(0, wave=1), record(1, wave=2)], attempts=(worked,)))
    (stage,) = shown.stages
    assert [one.restored for one in stage.cells] == [True, False]
    other = replace(worked, restore="an earlier one")
    assert not any(one.restored for one in run_grid(restored_facts([record(0)], attempts=(other,))).stages[0].cells)


def test_very_many_partitions_are_a_strip_of_which_each_part_shows_what_matters_most():
    actions = [REUSE] * 250 + [RUN_IT] * 5 + [BLOCKED]
    records = [*(record(partition) for partition in range(250)), record(255, PartitionState.BLOCKED)]
    (row,) = run_grid(facts(actions, records)).stages
    assert (row.cells, len(row.strip)) == ((), 86)
    assert [(part.first, part.last) for part in (row.strip[0], row.strip[-1])] == [(0, 2), (255, 255)]
    assert row.strip[83].counts == {CellState.CONSUMABLE: 1, CellState.WAITING: 2}
    assert [part.state for part in row.strip[82:]] == [
        CellState.CONSUMABLE,
        CellState.WAITING,
        CellState.WAITING,
        CellState.BLOCKED,
    ]
    assert row.counts == {CellState.CONSUMABLE: 250, CellState.WAITING: 5, CellState.BLOCKED: 1}
    assert (row.blocked, row.consumable, row.partitions) == (1, 250, 256)


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


def test_the_pace_of_an_attempt_says_when_its_stage_is_done():
    working = replace(attempt(3, AttemptState.RUNNING), attempt_id="attempt", started_at=NOW - timedelta(minutes=2))
    made = facts([REUSE, REUSE, RUN_IT], [record(0), record(1, wave=2)], "running", attempts=(working,))
    pace = run_grid(made).stages[0].pace
    assert pace is not None
    assert (pace.wave, pace.recorded, pace.left, pace.per_minute, pace.seconds_to_go) == (1, 2, 1, 1.0, 60.0)


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
