"""The cells that a backfill shows are those that it computes, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.run.backfill.paper_backfill import PIPELINE, STAGES, PaperBackfill, running, states

from stagehold.errors import BackfillChanged, BackfillRefused, GateBlocked
from stagehold.model.backfill import BackfillChoice, Only
from stagehold.plan.resume.planner import resume_plan
from stagehold.run.backfill import backfill_planning
from stagehold.run.backfill.backfill_runs import known_backfills
from stagehold.run.planning.restoring import remark_on

pytestmark = pytest.mark.slow

DATES = tuple(f"2026-11-0{day}" for day in range(1, 6))
GOOD, STALE, FAILED, MISSING, LAST = DATES
ALL = frozenset({0, 1, 2})
FIVE = BackfillChoice(DATES[0], DATES[-1])


@pytest.fixture
def world(tmp_path) -> Iterator[PaperBackfill]:
    """Two good dates, a stale one, one whose gate refused a partition, and one that never ran."""
    world = PaperBackfill(tmp_path)
    nights = world.nights
    nights.write_source(1, 40)
    nights.run(STALE)
    nights.write_source(1, -2)
    with pytest.raises(GateBlocked):
        nights.run(FAILED)
    nights.write_source(1, 2)
    nights.run(GOOD)
    nights.run(LAST)
    yield world
    nights.ledger.close()


def test_only_what_a_run_would_do_runs_and_good_dates_are_left_alone(world) -> None:
    plan = world.plan(FIVE)
    # Of the failed date the source is another file by now, so the gate has nothing to say of it any more.
    assert states(plan) == {GOOD: "ggg", STALE: "sss", FAILED: "fmm", MISSING: "mmm", LAST: "ggg"}
    assert running(plan) == {
        **{(STALE, stage): frozenset({1}) for stage in STAGES},
        (FAILED, "drafts"): frozenset({1}),
        **{(FAILED, stage): ALL for stage in STAGES[1:]},
        **{(MISSING, stage): ALL for stage in STAGES},
    }
    assert (plan.runs, plan.reuses, plan.refusal) == (3 + 7 + 9, 9 + 6 + 2 + 9, None)
    before = {date: world.nights.records(date, "prints") for date in (GOOD, LAST)}
    outcomes = world.run(world.begin(FIVE, plan.token))
    assert [outcome.interval for outcome in outcomes] == [STALE, FAILED, MISSING]
    assert world.computed(outcomes) == running(plan)
    assert {date: world.nights.published(date) for date in DATES} == dict.fromkeys(DATES, world.nights.expected)
    assert {date: world.nights.records(date, "prints") for date in (GOOD, LAST)} == before
    assert world.plan(FIVE).refusal == "There is nothing to run."
    (known,) = known_backfills(PIPELINE, world.nights.ledger, 9)
    assert (known.counts, known.resume) == ({"finished": len(known.states)}, None)


def test_what_a_run_would_do_by_itself_is_planned_once_and_comes_to_the_same(world, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(backfill_planning, "resume_plan", lambda known: asked.append(known) or resume_plan(known))
    plan = world.plan(FIVE)
    assert len(asked) == len(DATES)
    world.plan(BackfillChoice(DATES[0], DATES[-1], stages=("edits",)))
    assert len(asked) == 3 * len(DATES)
    monkeypatch.setattr(backfill_planning, "_tells_nothing", lambda told, known: False)
    assert world.plan(FIVE) == plan
    assert len(asked) == 5 * len(DATES)


@pytest.mark.parametrize(
    ("only", "dates"),
    [
        (Only.MISSING, [FAILED, MISSING]),
        (Only.STALE, [STALE]),
        (Only.FAILED, [FAILED]),
        (Only.ALL, list(DATES)),
    ],
)
def test_only_says_which_dates_run(world, only, dates) -> None:
    choice = BackfillChoice(DATES[0], DATES[-1], only=only)
    plan = world.plan(choice)
    outcomes = world.run(world.begin(choice))
    assert [outcome.interval for outcome in outcomes] == dates
    assert world.computed(outcomes) == running(plan)


def test_a_stage_alone_is_computed_with_what_it_needs_of_others(world) -> None:
    choice = BackfillChoice(DATES[0], DATES[-1], stages=("edits",))
    plan = world.plan(choice)
    # Of the stale date drafts are taken as they are, so edits are what they would be.
    assert running(plan) == {
        (FAILED, "drafts"): frozenset({1}),
        (FAILED, "edits"): ALL,
        (MISSING, "drafts"): ALL,
        (MISSING, "edits"): ALL,
    }
    outcomes = world.run(world.begin(choice))
    assert world.computed(outcomes) == running(plan)
    assert world.nights.records(MISSING, "prints") == ()


def test_everything_from_a_stage_on_is_computed_once_more_and_once_only(world) -> None:
    choice = BackfillChoice(GOOD, GOOD, restore_from_stage="edits")
    begun = world.begin(choice)
    expected = {(GOOD, stage): ALL for stage in STAGES[1:]}
    assert world.computed(world.run(begun)) == expected
    again = world.run(begun)
    assert [one.finished_before for one in again] == [True]


def test_a_backfill_that_was_interrupted_goes_on_where_it_stopped(world) -> None:
    begun = world.begin(BackfillChoice(DATES[0], DATES[-1], only=Only.ALL))
    going_on = world.running(begun)
    first = [next(going_on), next(going_on)]
    going_on.close()
    rest = world.run(begun)
    assert [one.finished_before for one in rest] == [True, True, False, False, False]
    assert {date for date, _ in world.computed(first + rest)} == {*DATES}
    assert all(partitions == ALL for partitions in world.computed(rest).values())


def test_what_changed_meanwhile_is_told_and_nothing_begins(world) -> None:
    shown = world.plan(FIVE).token
    world.nights.write_source(1, 3)  # all dates but the missing one are stale by that
    with pytest.raises(BackfillChanged, match=r"6 more cells run than you were shown: 2026-11-01 drafts\[1\]"):
        world.begin(FIVE, shown)
    assert world.nights.ledger.backfills.newest("paper", 5) == ()


def test_a_date_that_cannot_be_planned_is_left_out_and_told(world) -> None:
    with pytest.raises(BackfillRefused, match="nothing to run"):
        world.begin(BackfillChoice(GOOD, GOOD))


def test_a_date_of_an_earlier_order_that_airflow_runs_all_the_same_computes_nothing(world) -> None:
    begun = world.begin(FIVE)
    assert begun.order(GOOD).is_empty
    world.nights.write_source(1, 77)
    restore = begun.order(GOOD)
    from stagehold.run.backfill.backfill_runs import restore_of
    from stagehold.run.planning.planning import RunRequest

    assert restore.backfill == begun.backfill_id
    outcome = world.work(RunRequest(world.nights.pipeline, "r2", GOOD, {}, restore_of(begun, GOOD, "r2")))
    assert outcome.computed == 0


def test_a_restore_of_dates_that_never_ran_says_so_in_the_plan_and_in_each_run(world) -> None:
    choice = BackfillChoice(GOOD, MISSING, restore_from_stage="edits")
    told = (
        "Nothing is on record of {}, so all of it is computed, not only edits and what reads it. Newest intervals on "
    )
    assert str(world.plan(choice).remark).startswith(told.format(MISSING))
    assert world.plan(BackfillChoice(GOOD, MISSING)).remark is None
    many = BackfillChoice("2026-10-01", "2026-10-07", restore_from_stage="edits")
    several = "2026-10-01, 2026-10-02, 2026-10-03, 2026-10-04, 2026-10-05 and 2 more, so all of them are computed"
    assert several in str(world.plan(many).remark)
    requests = []
    world.work = lambda request: requests.append(request)
    world.run(world.begin(choice))
    remarks = {request.interval: remark_on(request, world.nights.ledger) for request in requests}
    assert [interval for interval, remark in remarks.items() if remark] == [MISSING]
    assert str(remarks[MISSING]).startswith(told.format(MISSING))


def test_a_date_that_its_gate_blocks_is_not_done_though_nothing_of_it_runs(world) -> None:
    blocked = "2026-11-06"
    world.nights.write_source(1, -2)
    with pytest.raises(GateBlocked):
        world.nights.run(blocked)
    plan = world.plan(BackfillChoice(blocked, blocked))
    assert (plan.runs, plan.is_done) == (0, False)
    command = f"stagehold partitions {PIPELINE} --interval {blocked} --stage drafts"
    assert plan.refusal == f"There is nothing to run. drafts of {blocked} is blocked by its gate: `{command}` says why."
