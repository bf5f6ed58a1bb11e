"""Which stages of an interval are told as stale, with how many partitions and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from tests.plan.resume.situations import DECISIONS

from stagehold.model.backfill import BackfillChoice, Only
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.model.work_order import WorkOrder
from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan
from stagehold.plan.backfill.cells import cells_of
from stagehold.plan.backfill.staleness import StaleInterval, StaleStage, stale_intervals
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.split.regions import Region

THERE, BLOCKED = PartitionState.CONSUMABLE, PartitionState.BLOCKED
NEW_CODE, NEW_SUITE, LOST = "its code changed", "its suite changed", "its data is gone"


@dataclass(frozen=True)
class Made:
    """A partition as a plan has it: what happens to it, why, and what is on record."""

    action: Action
    reason: str = "nothing changed"
    recorded: PartitionState | None = THERE


GOOD, CHANGED = Made(Action.REUSE), Made(Action.RUN, NEW_CODE)
JUDGED = Made(Action.JUDGE, NEW_SUITE)
MISSING = Made(Action.RUN, "never computed", None)


def record(partition: int, state: PartitionState) -> PartitionRecord:
    return PartitionRecord(
        cell=Cell("pipe", "one", "day"),
        partition=partition,
        state=state,
        run_id="run",
        attempt_id="attempt",
        epoch=1,
        wave=0,
        table="table",
        version=1,
        files=(),
        rows=1,
        fingerprint="",
        compute_key="key",
        recorded_at=datetime(2026, 11, 21, tzinfo=UTC),
    )


def planned(made: list[Made], failed: bool = False) -> BackfillPlan:
    decisions = tuple(
        DECISIONS[one.action](
            "one", place, because(one.reason), record=record(place, one.recorded) if one.recorded else None
        )
        for place, one in enumerate(made)
    )
    plan = ResumePlan(decisions, {"one": decisions})
    cells = cells_of(plan, plan, [Region("one", ("one",), ())], {"one"} if failed else (), {})
    interval = IntervalPlan("day", WorkOrder(("one",), only_recorded=True), cells)
    return BackfillPlan("pipe", BackfillChoice("day", "day", only=Only.STALE), (interval,))


@pytest.mark.parametrize(
    ("made", "partitions", "reason"),
    [
        pytest.param([GOOD, CHANGED], 1, NEW_CODE, id="some of it is computed again"),
        pytest.param([GOOD, JUDGED, JUDGED], 2, NEW_SUITE, id="its data stays, and is judged again"),
        pytest.param([CHANGED, JUDGED, JUDGED], 3, NEW_SUITE, id="the reason is that of most"),
    ],
)
def test_a_stage_that_is_there_and_would_come_out_differently_is_stale(made, partitions, reason) -> None:
    assert stale_intervals(planned(made)) == (StaleInterval("day", (StaleStage("one", partitions, reason),)),)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param([GOOD, GOOD], id="nothing changed"),
        pytest.param([CHANGED, MISSING], id="some of it was never computed"),
        pytest.param([CHANGED, Made(Action.HEAL, LOST)], id="the data of some is gone"),
        pytest.param([CHANGED, Made(Action.BLOCKED, "refused", BLOCKED)], id="a gate blocks some"),
    ],
)
def test_what_a_worse_word_tells_is_not_called_stale(made) -> None:
    assert stale_intervals(planned(made)) == ()


def test_a_stage_that_failed_is_not_called_stale() -> None:
    assert stale_intervals(planned([CHANGED], failed=True)) == ()


def test_an_interval_without_a_plan_is_not_called_stale() -> None:
    unplanned = IntervalPlan("day", WorkOrder(()), problem="the source is gone")
    assert stale_intervals(BackfillPlan("pipe", BackfillChoice("day", "day"), (unplanned,))) == ()
