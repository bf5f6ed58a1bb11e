"""When a page that takes long is made, and who waits for it. Pages are made up here; threads and time are played."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import pytest

from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.model.kept import KeptMemory

RUN = "pipe/manual"


class World:
    """Making a page takes ``seconds`` on the clock; in a thread it waits until the test lets it go on."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now, self.seconds, self.made = 0.0, seconds, 0
        self.memory = KeptMemory(10_000, lambda: self.now)
        self.pages = KeptPages("pages", self.memory, lambda: self.now)
        self.go_on = Event()
        self.go_on.set()

    def make(self):
        assert self.go_on.wait(10)
        self.now += self.seconds
        self.made += 1
        return SimpleNamespace(number=self.made, text=bytes(2_000))

    def ask(self, revision: int = 1, *, large: bool = False, run: str = RUN):
        page = self.pages.page(run, revision, self.make, lambda: large)
        return page and page.number

    def settle(self) -> None:
        """Whatever is made aside is there."""
        while self.pages._under_way:
            Event().wait(0.01)


def test_a_page_that_is_made_quickly_is_made_for_each_request():
    world = World()
    assert [world.ask(), world.ask(), world.ask()] == [1, 2, 3]


def test_a_page_that_takes_long_is_made_once_while_nothing_changes():
    world = World(seconds=1)
    assert [world.ask(), world.ask(), world.ask()] == [1, 1, 1]


def test_nobody_waits_for_the_first_page_of_a_large_run():
    world = World(seconds=1)
    world.go_on.clear()
    assert [world.ask(large=True), world.ask(large=True)] == [None, None]
    world.go_on.set()
    world.settle()
    assert (world.ask(large=True), world.made) == (1, 1)


def test_a_large_page_that_was_made_quickly_is_shown_to_the_next_reader():
    world = World()
    assert world.ask(large=True) is None
    world.settle()
    assert world.ask(large=True) == 1


def test_after_a_change_the_old_page_is_shown_while_a_new_one_is_made():
    world = World(seconds=1)
    world.ask(revision=1)
    world.now += 2.5
    world.go_on.clear()
    assert [world.ask(revision=2), world.ask(revision=3)] == [1, 1]
    world.go_on.set()
    world.settle()
    assert (world.ask(revision=2), world.made) == (2, 2)


def test_a_run_that_writes_all_the_time_does_not_keep_us_busy_all_the_time():
    world = World(seconds=10)
    world.ask(revision=1)
    world.now += 19
    assert world.ask(revision=2) == 1
    world.settle()
    assert world.made == 1


def test_after_a_while_a_page_is_made_anew_though_the_ledger_has_not_changed():
    """Files of the lake come and go unseen by it."""
    world = World(seconds=1)
    world.ask()
    world.now += 21
    world.ask()
    world.settle()
    assert world.made == 2


def test_what_went_wrong_aside_is_told_once_and_tried_again():
    world = World(seconds=1)
    broken = SimpleNamespace(now=True)

    def make():
        if broken.now:
            raise RuntimeError("the lake is away")
        return World.make(world)

    world.make = make
    assert world.ask(large=True) is None
    world.settle()
    with pytest.raises(RuntimeError, match="the lake is away"):
        world.ask(large=True)
    broken.now = False
    assert world.ask(large=True) is None
    world.settle()
    assert world.ask(large=True) == 1


def test_only_so_many_bytes_of_pages_are_kept():
    world = World(seconds=1)
    runs = [f"pipe/{number}" for number in range(5)]
    assert [world.ask(run=run) for run in runs] == [1, 2, 3, 4, 5]
    assert [world.ask(run=run) for run in reversed(runs)] == [5, 4, 3, 2, 6]
    (kept,) = world.memory.kinds
    assert (kept.kind, kept.values) == ("pages", 4)
    assert 8_000 < kept.bytes < 10_000


def test_where_one_page_is_made_at_a_time_the_others_wait():
    world = World(seconds=1)
    world.pages = KeptPages("pages", world.memory, lambda: world.now, at_once=1)
    world.go_on.clear()
    assert [world.ask(large=True, run=str(number)) for number in range(3)] == [None] * 3
    assert world.pages._turns.acquire(blocking=False) is False
    world.go_on.set()
    world.settle()
    assert sorted(world.ask(large=True, run=str(number)) for number in range(3)) == [1, 2, 3]
