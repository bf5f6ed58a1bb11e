"""Plans of large backfills: who waits, who comes back, and when a plan is made anew. Threads and time are played."""

from __future__ import annotations

from threading import Event

import pytest

from stagehold.airflow.pipeline_page.backfill_plans import LargePlans, MadePlan
from stagehold.airflow.pipeline_page.pipeline_responses import PlanUnderWay
from stagehold.model.backfill import BackfillChoice
from stagehold.model.kept import KeptMemory
from stagehold.plan.backfill.backfill_plan import BackfillPlan

SECONDS = 20.0
AT_MOST = 10  # seconds that the test waits for a thread


class World:
    """A plan takes 20 seconds on the clock. Its thread waits behind 3 of 8 intervals until the test lets it go on."""

    def __init__(self) -> None:
        self.now, self.made = 0.0, []
        self.files: tuple[str, ...] = ("a.parquet",)
        self.begun, self.go_on = Event(), Event()
        self.plans = LargePlans(KeptMemory(1_000_000, lambda: self.now), lambda: self.now)

    def ask(self, name: str = "june", revision: int = 1):
        return self.plans.ask(name, revision, lambda progress: self.make(name, progress))

    def confirmed(self, name: str = "june", revision: int = 1) -> BackfillPlan | None:
        return self.plans.confirmed(name, revision, lambda: {("orders", ""): self.files})

    def make(self, name: str, progress) -> MadePlan:
        files = self.files
        progress(3, 8)
        self.begun.set()
        assert self.go_on.wait(AT_MOST)
        self.now += SECONDS
        self.made.append(name)
        plan = BackfillPlan(f"{name} {len(self.made)}", BackfillChoice("2026-06-01", "2026-06-30"), ())
        return plan, {("orders", ""): files}

    def settle(self) -> None:
        self.go_on.set()
        while self.plans._made._under_way:
            Event().wait(0.01)


@pytest.fixture
def world() -> World:
    return World()


def test_nobody_waits_for_a_plan_and_everybody_sees_how_far_it_is(world):
    assert isinstance(world.ask(), PlanUnderWay)
    assert world.begun.wait(AT_MOST)
    assert world.ask() == PlanUnderWay(planned=3, of=8)
    world.settle()
    assert world.ask().pipeline == "june 1"


def test_who_comes_back_has_the_plan_that_was_made_in_the_meantime(world):
    world.ask()
    world.settle()
    world.now += 100
    assert [world.ask().pipeline, world.ask().pipeline] == ["june 1", "june 1"]
    assert world.confirmed().pipeline == "june 1"
    assert world.made == ["june"]


def test_one_plan_is_made_after_the_other(world):
    world.ask("june")
    assert world.begun.wait(AT_MOST)
    assert world.ask("july") == PlanUnderWay(planned=0, of=None)
    world.settle()
    assert (world.ask("june").pipeline, world.ask("july").pipeline) == ("june 1", "july 2")


def test_a_plan_that_was_just_made_is_shown_though_runs_write_all_the_time(world):
    """Else who waits for it would never see it."""
    world.ask(revision=1)
    world.settle()
    assert world.ask(revision=2).pipeline == "june 1"


def test_it_is_not_the_plan_that_is_confirmed_once_something_was_written(world):
    world.ask(revision=1)
    world.settle()
    assert world.confirmed(revision=1) is not None
    assert world.confirmed(revision=2) is None


def test_it_is_not_the_plan_that_is_confirmed_once_a_source_has_other_files(world):
    """And who asks again is not shown it once more."""
    world.ask()
    world.settle()
    world.files = ("a.parquet", "b.parquet")
    assert world.ask().pipeline == "june 1"
    assert world.confirmed() is None
    world.go_on.clear()
    assert isinstance(world.ask(), PlanUnderWay)
    world.settle()
    assert (world.ask().pipeline, world.confirmed().pipeline) == ("june 2", "june 2")


def test_a_source_that_changes_while_the_plan_is_made_is_seen_when_it_is_confirmed(world):
    world.ask()
    assert world.begun.wait(AT_MOST)
    world.files = ("b.parquet",)
    world.settle()
    assert world.confirmed() is None


def test_an_old_plan_is_not_shown_once_something_was_written(world):
    world.ask(revision=1)
    world.settle()
    world.now += 3 * SECONDS
    world.go_on.clear()
    assert isinstance(world.ask(revision=2), PlanUnderWay)
    world.settle()
    assert world.ask(revision=2).pipeline == "june 2"


def test_what_went_wrong_is_told_once_and_tried_again(world):
    def fail(progress):
        raise RuntimeError("the lake is away")

    world.plans.ask("june", 1, fail)
    world.settle()
    with pytest.raises(RuntimeError, match="the lake is away"):
        world.ask()
    assert isinstance(world.ask(), PlanUnderWay)
    world.settle()
    assert world.ask().pipeline == "june 1"
