"""Who works on ledger and lake: each does what a process of the product does, by the product's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from fuzz.simulator.paper_work import PaperWork
from tests.run.protocol.stepper import Stepper, pause

from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.errors import StageholdError, UnknownName
from stagehold.ledger.leases import Heartbeat
from stagehold.model.partition_set import Share
from stagehold.model.states import AttemptEvent
from stagehold.plan.split.regions import stage_regions
from stagehold.run.attempt.region_attempt import RegionAttempt
from stagehold.run.checkpoints.coordinator_driver import Driver
from stagehold.run.checkpoints.discarding import take_coordinator_lease
from stagehold.run.checkpoints.run_checkpoints import LISTENERS, RunCheckpoints
from stagehold.run.here.region import record_lost_attempts
from stagehold.run.intervals.interval_deletion import IntervalDeletion
from stagehold.run.journal import journal
from stagehold.run.lease.leasing import kept_alive, take_lease
from stagehold.run.lease.sweeping import Sweeper
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.upkeep.reconcile import reconcile_ledger
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from fuzz.simulator.simulation import Simulation

T = TypeVar("T")

TURNS = 3  # of a coordinator: it begins a checkpoint, hears of it, completes it
RUN, INTERVAL = "r", "2026-11-20"


class PaperHeart(Heartbeat):
    """Beats when it is asked, and not by itself."""

    def end(self) -> None:
        self._stopping.set()


class PaperAttempt(RegionAttempt):
    """An attempt of a run whose state nobody looks at."""

    def _settled(self, outcome: RegionOutcome) -> RegionOutcome:
        journal.succeed(self.work.task, self.work.attempt, self.work.workplace.ledger, str(outcome))
        return outcome


def attempt(world: Simulation, pipeline: Pipeline, share: Share | None, number: int, *, sleeps: bool) -> None:
    """An attempt of a share of the region. ``sleeps`` says that it never finds out by its own clock that its lease may
    be over.
    """
    (region,) = stage_regions(pipeline)
    request = RunRequest(pipeline, RUN, INTERVAL, {})
    task, place = RegionTask(request, region, f"task/{share}", "cli", share=share), world.place
    ledger = place.ledger
    waiting = replace(journal.attempt_of(task, ledger), attempt_id=f"a{number}")
    with ledger.together():
        ledger.runs.create(journal.run_of(request, "cli"))
        ledger.attempts.create(waiting, AttemptEvent.SCHEDULE)
    lease = take_lease(task, place)
    heartbeat = PaperHeart(ledger.leases, lease, 3600 if sleeps else 0)
    try:
        record_lost_attempts(task, waiting, lease, place)
        begun = RegionAttempt.begin(task, waiting, heartbeat, place, _heal)
        PaperAttempt(PaperWork(begun.work, world), begun.previous, begun.news).run()
    finally:
        heartbeat.end()
        ledger.leases.release(lease)


def sweeper(world: Simulation) -> None:
    Sweeper(world.place.ledger, world.settings).sweep_lake([world.pipeline], dry_run=False)


def deleter(world: Simulation) -> None:
    with suppress(UnknownName):
        IntervalDeletion.of(world.pipeline, INTERVAL, world.place, "ann").carry_out()


def reconciler(world: Simulation) -> None:
    reconcile_ledger(world.place.ledger, [world.pipeline], world.settings, dry_run=False)


def coordinator(world: Simulation) -> None:
    request, place = RunRequest(world.pipeline, RUN, INTERVAL, {}), world.place
    run = place.ledger.runs.get(RUN)
    with kept_alive(take_coordinator_lease(run, place), place) as heartbeat:
        checkpoints = RunCheckpoints(run, request, place, heartbeat)
        checkpoints.clear_up()
        driver = Driver(checkpoints, CoordinatorSettings.of(world.pipeline.checkpoint), LISTENERS)
        for _ in range(TURNS):
            driver.turn()
            world.effects.look("waits")
        driver.suspend()


OTHERS: Mapping[str, Callable[[Simulation], None]] = {
    "sweeper": sweeper,
    "deleter": deleter,
    "reconciler": reconciler,
    "coordinator": coordinator,
}


class Actor:
    """A process, or what goes on beside it in the same process: its name, and where it stands. It ``waits_for`` another
    one, its ``other`` is the one that lives and dies with it.
    """

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name, self.stepper, self.steps, self.decided = name, Stepper(work), 0, ""
        self.waits_for: Actor | None = None
        self.other: Actor | None = None

    @property
    def alive(self) -> bool:
        return not self.stepper.ended

    @property
    def who_goes_on(self) -> Actor:
        """Who is to make a step if this one is told to."""
        return self.waits_for if self.waits_for and self.waits_for.alive else self

    def kill(self) -> None:
        """End the process where it stands."""
        for actor in (self, self.other):
            if actor is not None and actor.alive:
                actor.stepper.kill()

    def interrupt(self) -> None:
        """Interrupt the process where it stands: it ends on a way of its own, and what goes on beside it goes on."""
        self.waits_for = None
        self.stepper.interrupt()

    @property
    def ended_as(self) -> str:
        error = self.stepper.error
        return type(error).__name__ if error else "done"

    @property
    def surprise(self) -> BaseException | None:
        """An error that no process of the product ends with, whatever stores and others do."""
        error = self.stepper.error
        return error if isinstance(error, Exception) and not isinstance(error, StageholdError | OSError) else None


def beside(world: Simulation, work: Callable[[], T], /) -> Future[T]:
    """Has another actor do what the one at work has done beside it: others can come before each of its steps."""
    process = world.at_work
    number = next(number for number, actor in world.actors.items() if actor is process)
    actor = Actor(f"{process.name} beside", work)
    actor.other, process.other = process, actor
    world.actors[-number] = actor
    return Begun(process, actor)


class Begun(Future[T]):
    """What an actor beside a process will have done."""

    def __init__(self, process: Actor, actor: Actor) -> None:
        super().__init__()
        self._process, self._actor = process, actor

    def result(self, timeout: float | None = None) -> T:
        _await(self._process, self._actor)
        if self._actor.stepper.error is not None:
            raise self._actor.stepper.error
        return cast("T", self._actor.stepper.done)


def _await(process: Actor, other: Actor) -> None:
    process.waits_for = other
    while other.alive:
        pause("waits for its wave")
    process.waits_for = None


def _heal(task: RegionTask) -> None:
    raise AssertionError(f"nothing is read of other regions, so nothing of {task.region.name} is healed")
