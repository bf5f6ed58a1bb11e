"""What a process keeps, how it is measured, and what goes first."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stagehold.model.kept import IDLE_SECONDS, MEGABYTE, KeptKind, KeptMemory, Shelf, bytes_of
from stagehold.settings import Settings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Page:
    text: str
    parts: tuple[str, ...] = ()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> KeptMemory:
    return KeptMemory(3 * 1024, clock)


def kilobyte(number: int) -> bytes:
    return bytes([number]) * (1024 - 33)


def test_what_is_kept_takes_no_more_than_it_may_and_what_was_used_longest_ago_goes_first(memory):
    shelf = Shelf("pages", memory)
    for number in range(3):
        shelf.put(number, kilobyte(number))
    shelf.get(0)
    shelf.put(3, kilobyte(3))
    assert [shelf.get(number) is not None for number in range(4)] == [True, False, True, True]
    assert memory.kinds == (KeptKind("pages", 3, 3 * 1024),)


def test_several_shelves_share_the_same_bytes(memory):
    pages, plans = Shelf("pages", memory), Shelf("plans", memory)
    pages.put("one", kilobyte(1))
    plans.put("one", kilobyte(2) + kilobyte(3))
    plans.put("two", kilobyte(4))
    assert pages.get("one") is None
    assert [one.kind for one in memory.kinds] == ["plans"]


def test_the_newest_stays_however_large_it_is(memory):
    shelf = Shelf("pages", memory)
    shelf.put("small", kilobyte(1))
    shelf.put("large", kilobyte(2) * 10)
    assert (shelf.get("small"), shelf.get("large")) == (None, kilobyte(2) * 10)
    shelf.put("small", kilobyte(1))
    assert (shelf.get("large"), shelf.get("small")) == (None, kilobyte(1))


def test_what_nobody_asks_for_goes_after_a_while(memory, clock):
    shelf = Shelf("pages", memory)
    shelf.put("left", kilobyte(1))
    shelf.put("used", kilobyte(2))
    clock.now += IDLE_SECONDS - 1
    shelf.get("used")
    clock.now += 2
    assert memory.kinds == (KeptKind("pages", 1, 1024),)
    clock.now += IDLE_SECONDS
    assert memory.kinds == ()


def test_what_takes_the_place_of_another_counts_once(memory):
    shelf = Shelf("pages", memory)
    for _ in range(5):
        shelf.put("one", kilobyte(1))
    assert memory.kinds == (KeptKind("pages", 1, 1024),)
    shelf.drop("one")
    shelf.drop("never there")
    assert memory.kinds == ()


def test_a_value_is_measured_with_all_that_it_is_made_of_each_part_once():
    part = "x" * 10_000
    assert 10_000 < bytes_of(Page("y", (part,))) < 11_000
    assert bytes_of(Page(part, (part, part))) < 11_000
    assert bytes_of(Page("y", tuple(f"{number}" * 1_000 for number in range(100)))) > 100_000


def test_only_the_part_of_a_value_that_is_its_own_is_counted(memory):
    shelf, shared = Shelf("pages", memory), kilobyte(0) * 100
    shelf.put("one", (shared, kilobyte(1)), own=kilobyte(1))
    assert memory.kinds == (KeptKind("pages", 1, 1024),)


def test_the_settings_say_how_much_it_may_be(monkeypatch):
    monkeypatch.setenv("STAGEHOLD_KEPT_MEGABYTES", "3")
    assert KeptMemory().most_bytes == 3 * MEGABYTE
    assert Settings().kept_megabytes == 64
