"""Waves of which one is finished in a thread while the next one is computed: their order, and what stops them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.run.protocol.world import INTERVAL, RUN, World

from stagehold.errors import RunSuspended
from stagehold.model.records import AttemptState
from stagehold.plan.split.regions import stage_regions
from stagehold.run.delivery.wave import WavePlace, place_of
from stagehold.run.equipment.workplace import in_a_thread
from stagehold.run.faults import AnyPoint, Faults, InjectedFault, Point
from stagehold.run.here.region import work_on
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.run.stopping.stopping import suspend_run

Place = tuple[Point, int]

WAIT_SECONDS = 30.0
OF_WAVES = (Point.BEFORE_WRITE, Point.AFTER_WRITE, Point.BEFORE_PUBLISH, Point.AFTER_RECORD)


class Told(Faults):
    """Tells which points were passed. One may be ``held`` until another is, and something may ``happen`` at one."""

    def __init__(self, world: World, held: Place | None = None, until: Place | None = None) -> None:
        super().__init__(world.settings.home_path, INTERVAL)
        self.passed: list[Place] = []
        self.held, self.until, self.reached = held, until, threading.Event()
        self.happen: dict[Place, Callable[[], None]] = {}

    def reach(self, point: AnyPoint, stage: str, wave: int = 0) -> None:
        if stage != "drafts" or point not in OF_WAVES:
            return
        place = Point(point), wave
        if place == self.held:
            assert self.reached.wait(WAIT_SECONDS), f"{self.until} does not come before {self.held}"
        self.happen.get(place, list)()
        self.passed.append(place)
        if place == self.until:
            self.reached.set()

    def waves_at(self, point: Point) -> list[int]:
        return [wave for at, wave in self.passed if at is point]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.run.protocol.world.PARTITIONS", 8)
    return World(tmp_path)


def attempt(world: World, told: Told) -> None:
    """An attempt of all drafts, with two partitions a wave, and a thread of its own to finish waves in."""
    pipeline = world.pipelines[1]
    (region,) = (region for region in stage_regions(pipeline) if region.name == "drafts")
    task = RegionTask(RunRequest(pipeline, RUN, INTERVAL, {}), region, "cli/r/drafts", "cli")
    work_on(task, replace(world.workplace, faults=told, beside=in_a_thread))


def consumable(world: World) -> list[int]:
    return sorted(record.partition for record in world.consumable("drafts"))


def test_a_wave_is_written_while_the_one_before_waits_to_be_published_and_both_are_in_order(world):
    told = Told(world, held=(Point.BEFORE_PUBLISH, 2), until=(Point.AFTER_WRITE, 3))
    attempt(world, told)
    assert consumable(world) == [*range(8)]
    assert told.waves_at(Point.AFTER_RECORD) == [1, 2, 3, 4]
    assert told.waves_at(Point.BEFORE_WRITE) == [1, 2, 3, 4]
    world.check()


def test_no_third_wave_is_begun_while_two_are_under_way(world):
    told = Told(world, held=(Point.BEFORE_PUBLISH, 2), until=(Point.AFTER_WRITE, 3))
    told.happen[Point.BEFORE_WRITE, 4] = lambda: told.passed.index((Point.AFTER_RECORD, 2))  # raises where it is absent
    attempt(world, told)
    assert consumable(world) == [*range(8)]


def test_the_first_wave_is_waited_for(world):
    told = Told(world)
    attempt(world, told)
    assert told.passed.index((Point.AFTER_RECORD, 1)) < told.passed.index((Point.BEFORE_WRITE, 2))


def test_behind_a_wave_that_is_not_published_nothing_is(world):
    def fail() -> None:
        raise InjectedFault

    told = Told(world, held=(Point.BEFORE_PUBLISH, 2), until=(Point.AFTER_WRITE, 3))
    told.happen[Point.BEFORE_PUBLISH, 2] = fail
    with pytest.raises(InjectedFault) as raised:
        attempt(world, told)
    assert place_of(raised.value) == WavePlace("drafts", 2, (2, 3))
    assert consumable(world) == [0, 1]
    again = Told(world)
    attempt(world, again)
    assert consumable(world) == [*range(8)]
    world.check()


def test_a_wave_whose_successor_fails_is_published_all_the_same(world):
    def fail() -> None:
        raise InjectedFault

    told = Told(world, held=(Point.BEFORE_PUBLISH, 2), until=(Point.AFTER_WRITE, 3))
    told.happen[Point.AFTER_WRITE, 3] = lambda: (told.reached.set(), fail())
    with pytest.raises(InjectedFault):
        attempt(world, told)
    assert consumable(world) == [*range(4)]


def test_what_is_computed_when_the_run_is_suspended_is_published_and_nothing_else_is_begun(world):
    told = Told(world, held=(Point.BEFORE_PUBLISH, 2), until=(Point.AFTER_WRITE, 3))
    told.happen[Point.AFTER_WRITE, 3] = lambda: suspend_run(RUN, world.ledger)
    with pytest.raises(RunSuspended):
        attempt(world, told)
    assert consumable(world) == [*range(6)]
    assert told.waves_at(Point.BEFORE_WRITE) == [1, 2, 3]


def test_who_is_interrupted_ends_at_once_and_what_is_being_finished_then_is_published_no_more(world):
    def interrupt() -> None:
        raise KeyboardInterrupt("by ann")

    told, threads = Told(world, held=(Point.BEFORE_PUBLISH, 2)), set(threading.enumerate())
    told.happen[Point.AFTER_WRITE, 3] = interrupt
    with pytest.raises(KeyboardInterrupt):
        attempt(world, told)
    (ended,) = world.ledger.attempts.of_run(RUN)
    assert (ended.state, ended.failure) == (AttemptState.CANCELED, "cancelled by ann")
    assert consumable(world) == [0, 1]
    (left,) = set(threading.enumerate()) - threads
    assert left.daemon, "or the process could not end"
    told.reached.set()
    left.join(WAIT_SECONDS)
    assert consumable(world) == [0, 1]
    attempt(world, Told(world))
    assert consumable(world) == [*range(8)]
    world.check()


def test_who_is_interrupted_while_a_wave_is_waited_for_ends_at_once(world):
    told, waiting = Told(world), threading.main_thread().ident or 0

    def interrupt() -> None:
        signal.pthread_kill(waiting, signal.SIGINT)
        assert told.reached.wait(WAIT_SECONDS)

    told.happen[Point.BEFORE_PUBLISH, 1] = interrupt
    with pytest.raises(KeyboardInterrupt):
        attempt(world, told)
    assert told.passed == [(Point.BEFORE_WRITE, 1), (Point.AFTER_WRITE, 1)]
    told.reached.set()
    (ended,) = world.ledger.attempts.of_run(RUN)
    assert ended.state is AttemptState.CANCELED
