"""The stages of a run as its page shows them, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.airflow.run_page.made_run_facts import (
    BLOCKED,
    HEAL,
    NOW,
    REUSE,
    RUN,
    RUN_IT,
    attempt,
    facts,
    record,
    run_grid,
)

from stagehold.airflow.run_page.run_facts import RunFacts
from stagehold.airflow.runs.task_clearing import DagTask
from stagehold.model.partition_set import Share
from stagehold.model.records import (
    UNBEGUN,
    AttemptState,
    PartitionRecord,
    Restore,
)
from stagehold.model.standing import CellState, PartitionState
from stagehold.plan.resume.decisions import ResumePlan


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


def test_the_pace_of_an_attempt_says_when_its_stage_is_done():
    working = replace(attempt(3, AttemptState.RUNNING), attempt_id="attempt", started_at=NOW - timedelta(minutes=2))
    made = facts([REUSE, REUSE, RUN_IT], [record(0), record(1, wave=2)], "running", attempts=(working,))
    pace = run_grid(made).stages[0].pace
    assert pace is not None
    assert (pace.wave, pace.recorded, pace.left, pace.per_minute, pace.seconds_to_go) == (1, 2, 1, 1.0, 60.0)
