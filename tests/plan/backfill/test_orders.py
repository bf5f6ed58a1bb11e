"""What runs of a backfill are told, by what was chosen, and what that has the planner do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.made_records import partition_record
from tests.plan.resume.situations import (
    CHAIN,
    DECISIONS,
    DONE,
    FUSED,
    altered,
    blocked,
    changed,
    finished,
    fresh,
    with_facts,
    without,
    words,
)

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.backfill import BackfillChoice, Only, WorkOrder
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.backfill.backfill_plan import (
    BackfillPlan,
    IntervalPlan,
    StaleInterval,
    StaleStage,
    check_choice,
    order_of,
    stale_intervals,
)
from stagehold.plan.backfill.cells import cells_of
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.confining import LEFT, Confinement
from stagehold.plan.resume.decisions import Action, ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.plan.split.regions import Region, stage_regions

EVERY = ("raw", "clean", "total")
HALF = without(without(DONE, "clean", 1), "total", 0)  # a run stopped half-way
STALE = changed(DONE, "clean", code="new")


def ask(*stages: str, only: Only | None = None, stage: str | None = None) -> BackfillChoice:
    return BackfillChoice("2026-11-01", "2026-11-05", stages, only, stage)


@pytest.mark.parametrize(
    ("choice", "has_failed", "expected"),
    [
        (ask(), False, WorkOrder(EVERY)),
        (ask("total", "raw"), False, WorkOrder(("raw", "total"))),
        (ask(only=Only.MISSING), False, WorkOrder(EVERY, as_recorded=True)),
        (ask(only=Only.STALE), False, WorkOrder(EVERY, only_recorded=True)),
        (ask(only=Only.ALL), False, WorkOrder(EVERY, anew=EVERY)),
        (ask("clean", only=Only.ALL), False, WorkOrder(("clean",), anew=("clean",))),
        (ask(only=Only.FAILED), True, WorkOrder(EVERY)),
        (ask(only=Only.FAILED), False, WorkOrder(())),
        (ask(stage="clean"), False, WorkOrder(EVERY[1:], anew=EVERY[1:])),
        (ask("raw", "clean", stage="clean"), False, WorkOrder(("clean",), anew=("clean",))),
        (ask(stage="clean", only=Only.FAILED), False, WorkOrder(())),
    ],
)
def test_what_was_chosen_for_all_dates_is_what_each_run_is_told(choice, has_failed, expected):
    check_choice(choice, CHAIN)
    assert order_of(choice, CHAIN, has_failed=has_failed) == expected


def test_what_does_not_exist_or_excludes_itself_is_refused():
    with pytest.raises(UnknownName, match="other"):
        check_choice(ask("other"), CHAIN)
    with pytest.raises(InvalidArgument, match="--only is 'missing'"):
        check_choice(ask(only=Only.MISSING, stage="clean"), CHAIN)


def told(situation: Situation, order: WorkOrder) -> Situation:
    """As `run.planning` tells the planner."""
    every = frozenset(stage.name for stage in situation.pipeline.stages)
    judged = frozenset() if order.as_recorded else frozenset(order.stages)
    confined = Confinement(frozenset(order.stages), order.only_recorded)
    return with_facts(situation, accepted=every - judged, forced=frozenset(order.anew), confined=confined)


TABLE = [
    ("everything is there: nothing runs", DONE, ask(), "rr rr r"),
    ("a new date: everything runs", fresh(CHAIN), ask(), "RR RR R"),
    ("a new date, one stage: it runs with what it needs", fresh(CHAIN), ask("clean"), "RR RR -"),
    ("a new date, the last stage: with all before it", fresh(CHAIN), ask("total"), "RR RR R"),
    ("a new date has nothing stale", fresh(CHAIN), ask(only=Only.STALE), "-- -- -"),
    ("half a date: the rest of it", HALF, ask(), "rr rR R"),
    ("half a date, a stage that is there: nothing", HALF, ask("raw"), "rr r- -"),
    ("half a date has nothing stale", HALF, ask(only=Only.STALE), "rr r- -"),
    ("half a date: what is missing", HALF, ask(only=Only.MISSING), "rr rR R"),
    ("a stale stage and what reads it", STALE, ask(), "rr RR R"),
    ("a stale stage is there: nothing is missing", STALE, ask(only=Only.MISSING), "rr rr r"),
    ("a stale stage alone: its reader stays as it is", STALE, ask("clean"), "rr RR r"),
    ("a stage that reads a stale one: that is taken as it is", STALE, ask("total"), "rr rr r"),
    ("what is missing of a stale date, made from what there is", without(STALE, "total", 0), ask("total"), "rr rr R"),
    ("stale and missing: the stale", without(STALE, "clean", 1), ask(only=Only.STALE), "rr RR R"),
    ("everything once more", DONE, ask(only=Only.ALL), "RR RR R"),
    ("one stage once more, and nothing that reads it", DONE, ask("clean", only=Only.ALL), "rr RR r"),
    (
        "one stage once more where what it reads is gone",
        without(DONE, "raw", 1),
        ask("clean", only=Only.ALL),
        "rR RR r",
    ),
    ("a stage and all that read it", DONE, ask(stage="clean"), "rr RR R"),
    ("data of a result that is gone", with_facts(DONE, gone={"total": frozenset({0})}), ask(), "rr rr H"),
    ("that is nobody's who was not asked", with_facts(DONE, gone={"total": frozenset({0})}), ask("raw"), "rr rr r"),
    (
        "what was released is computed for who needs it",
        altered(without(DONE, "clean", 0), "raw", 0, state=PartitionState.RELEASED),
        ask("clean"),
        "Hr Rr r",
    ),
    ("what a gate blocks stays so, and its reader waits", blocked(DONE, "clean", 1), ask("total"), "rr r- B"),
    ("nobody else is told of it", blocked(DONE, "clean", 1), ask("raw"), "rr r- r"),
    (
        "what a gate blocked is tried again with other code",
        blocked(STALE, "clean", 1),
        ask(only=Only.MISSING),
        "rr rR r",
    ),
    ("what is computed along goes with its reader", without(finished(FUSED), "kept", 0), ask("kept"), "rr Rr Rr"),
    ("and with nobody else", without(finished(FUSED), "kept", 0), ask("raw"), "rr rr -r"),
]


@pytest.mark.parametrize(("situation", "choice", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_runs(situation, choice, expected):
    order = order_of(choice, situation.pipeline, has_failed=False)
    plan = resume_plan(told(situation, order))
    left = {(decision.stage, decision.partition) for decision in plan.decisions if str(decision.reason) == LEFT}
    shown = [
        "".join("-" if (stage, n) in left else letter for n, letter in enumerate(letters))
        for stage, letters in words(plan).items()
    ]
    assert " ".join(shown) == expected


def test_a_cell_says_how_it_stands_whatever_is_done_about_it():
    order = WorkOrder(("raw",))
    seconds = {"raw": {0: 2.0, 1: 4.0}}

    def states(situation: Situation, failed=frozenset()) -> list[str]:
        plan = resume_plan(told(situation, order))
        cells = cells_of(resume_plan(situation), plan, stage_regions(CHAIN), failed, seconds)
        return [str(cell.state) for cell in cells]

    assert states(DONE) == ["good", "good", "good"]
    assert states(HALF) == ["good", "missing", "missing"]
    assert states(HALF, {"clean"}) == ["good", "failed", "missing"]
    assert states(STALE) == ["good", "stale", "stale"]
    assert states(blocked(DONE, "clean", 1)) == ["good", "blocked", "blocked"]
    everything = resume_plan(fresh(CHAIN))
    raw, clean, _ = cells_of(everything, everything, stage_regions(CHAIN), (), seconds)
    assert (raw.runs, raw.seconds, raw.ranges, clean.seconds) == (2, 6.0, ((0, 1),), 0.0)


def test_what_waits_for_something_blocked_is_never_reached():
    situation = blocked(without(DONE, "total", 0), "clean", 1)
    plan = resume_plan(situation)
    cells = cells_of(plan, plan, stage_regions(CHAIN), (), {})
    assert [cell.runs for cell in cells] == [0, 0, 0]


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
    return partition_record(partition, Cell("pipe", "one", "day"), state=state)


def planned(made: list[Made], failed: bool = False) -> BackfillPlan:
    decisions = tuple(
        DECISIONS[decision.action](
            "one",
            place,
            because(decision.reason),
            record=record(place, decision.recorded) if decision.recorded else None,
        )
        for place, decision in enumerate(made)
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
