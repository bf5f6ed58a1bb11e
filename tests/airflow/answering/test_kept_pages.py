"""When a page that takes long is made, and who waits for it. Pages are made up here; threads and time are played."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import pytest

from stagehold.airflow.answering.kept_pages import MOST_PAGES, KeptPages

RUN = "pipe/manual"


class World:
    """Making a page takes ``seconds`` on the clock; in a thread it waits until the test lets it go on."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now, self.seconds, self.made = 0.0, seconds, 0
        self.pages = KeptPages(lambda: self.now)
        self.go_on = Event()
        self.go_on.set()

    def make(self):
        assert self.go_on.wait(10)
        self.now += self.seconds
        self.made += 1
        return SimpleNamespace(number=self.made)

    def ask(self, revision: int = 1, *, large: bool = False, run: str = RUN):
        page = self.pages.page(run, revision, self.make, lambda: large)
        return page and page.number

    def settle(self) -> None:
        """Whatever is made aside is there."""
        while self.pages._under_way:
            Event().wait(0.01)


def test_what_is_quick_is_made_for_each_request():
    world = World()
    assert [world.ask(), world.ask(), world.ask()] == [1, 2, 3]


def test_what_takes_long_is_made_once_while_nothing_changes():
    world = World(seconds=1)
    assert [world.ask(), world.ask(), world.ask()] == [1, 1, 1]


def test_nobody_waits_for_the_first_page_of_a_large_run():
    world = World(seconds=1)
    world.go_on.clear()
    assert [world.ask(large=True), world.ask(large=True)] == [None, None]
    world.go_on.set()
    world.settle()
    assert (world.ask(large=True), world.made) == (1, 1)


def test_a_large_page_that_turned_out_to_be_quick_is_shown_to_whoever_asks_next():
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


def test_after_a_while_it_is_made_anew_though_the_ledger_says_nothing():
    """Files of the lake come and go unseen by it."""
    world = World(seconds=1)
    world.ask()
    world.now += 21
    world.ask()
    world.settle()
    assert world.made == 2


def test_what_went_wrong_aside_is_told_once_and_tried_again(monkeypatch):
    world = World(seconds=1)
    broken = SimpleNamespace(now=True)

    def make():
        if broken.now:
            raise RuntimeError("the lake is away")
        return World.make(world)

    monkeypatch.setattr(world, "make", make)
    assert world.ask(large=True) is None
    world.settle()
    with pytest.raises(RuntimeError, match="the lake is away"):
        world.ask(large=True)
    broken.now = False
    assert world.ask(large=True) is None
    world.settle()
    assert world.ask(large=True) == 1


def test_only_some_pages_are_kept():
    world = World(seconds=1)
    for number in range(MOST_PAGES + 1):
        world.ask(run=f"pipe/{number}")
    assert world.ask(run="pipe/1") == 2
    assert world.ask(run="pipe/0") == MOST_PAGES + 2


def test_who_may_make_one_page_at_a_time_has_the_others_wait():
    world = World(seconds=1)
    world.pages = KeptPages(lambda: world.now, at_once=1)
    world.go_on.clear()
    assert [world.ask(large=True, run=str(number)) for number in range(3)] == [None] * 3
    assert world.pages._turns.acquire(blocking=False) is False
    world.go_on.set()
    world.settle()
    assert sorted(world.ask(large=True, run=str(number)) for number in range(3)) == [1, 2, 3]


def test_as_many_pages_are_kept_as_was_asked_for():
    world = World(seconds=1)
    world.pages = KeptPages(lambda: world.now, most=2)
    assert [world.ask(run=run) for run in ("one", "two", "three", "two", "one")] == [1, 2, 3, 2, 4]
