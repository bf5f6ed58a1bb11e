"""Tasks that ask for splits, step by step: on a real ledger and a real lake, with every order that a test chooses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.run.protocol.stepper import Stepper
from tests.run.protocol.world import INTERVAL, PARTITIONS, PIPELINE, RUN, World

from stagehold.errors import Fenced
from stagehold.model.records import AttemptState, Cell, RunState
from stagehold.run.journal.journal import TOOK

STAGE = "drafts"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def both(world: World) -> tuple[Stepper, Stepper]:
    first, second = (world.begin(STAGE, cut=2, part=part, asks=True) for part in range(2))
    return first, second


def times_computed(world: World) -> list[int]:
    """How often somebody recorded each partition as computed."""
    history = world.ledger.partitions.history(Cell(PIPELINE, world.pipelines[1].stage(STAGE).id, INTERVAL))
    counts = Counter(record.partition for record in history)
    return [counts[partition] for partition in range(PARTITIONS)]


def took(world: World) -> dict[str, str]:
    """What each task took, in order."""
    told: dict[str, str] = {}
    for event in world.ledger.events.of_kind(RUN, TOOK):
        told[event.subject] = f"{told.get(event.subject, '')} {event.text.split()[1]}".strip()
    return told


def test_tasks_take_turns_and_each_split_is_computed_once(world):
    first, second = both(world)
    while not (first.ended and second.ended):
        first.step()
        second.step()
    assert (first.error, second.error) == (None, None)
    world.check()
    assert times_computed(world) == [1, 1, 1, 1]
    assert took(world) == {"drafts[0-1]": "0-0 1-1", "drafts[2-3]": "2-2 3-3"}
    attempts = world.ledger.attempts.of_run(RUN)
    assert {attempt.state for attempt in attempts} == {AttemptState.FINISHED}
    assert {attempt.share for attempt in attempts} == {"0-0", "1-1", "2-2", "3-3", "0-1", "2-3"}
    world.bring_to_an_end()


def test_a_slow_task_holds_no_other_and_no_share_is_done_before_it_is_consumable(world):
    slow, fast = both(world)
    assert slow.go_to("before its commit")
    assert fast.go_to("waiting") is False, "its own share is done"
    assert fast.ended
    assert times_computed(world) == [0, 1, 1, 1]
    assert took(world) == {"drafts[0-1]": "0-0", "drafts[2-3]": "2-2 3-3 1-1"}
    slow.go_to("its end")
    assert (slow.error, times_computed(world)) == (None, [1, 1, 1, 1])
    world.check()
    world.bring_to_an_end()


def test_a_task_whose_own_splits_others_have_waits_for_them(world):
    thief = world.begin(STAGE, cut=2, part=0, asks=True)
    while took(world).get("drafts[0-1]") != "0-0 1-1 2-2":
        thief.step()
    owner = world.begin(STAGE, cut=2, part=1, asks=True)
    assert owner.go_to("waiting"), owner.error
    assert took(world)["drafts[2-3]"] == "3-3"
    thief.go_to("its end")
    owner.go_to("its end")
    assert (owner.error, times_computed(world)) == (None, [1, 1, 1, 1])
    world.check()


@pytest.mark.parametrize("place", ["before its commit", "after its commit", "a file is written", "after its lease"])
def test_whoever_dies_gives_back_what_it_had_and_comes_back_to_it_first(world, place):
    dead, other = both(world)
    assert dead.go_to("after its commit"), "of its first split"
    assert dead.go_to(place), dead.error
    dead.kill()
    other.go_to("waiting", most=300)
    world.check()
    again = world.begin(STAGE, cut=2, part=0, asks=True)  # the same task, while its lease has not ended
    again.go_to("its end")
    other.go_to("its end")
    assert (again.error, other.error) == (None, None)
    told_before = place != "after its lease"
    assert took(world)["drafts[0-1]"] == ("0-0 1-1 1-1" if told_before else "0-0 1-1")
    world.check()
    assert times_computed(world) == [1, 1, 1, 1]
    world.bring_to_an_end()


def test_a_zombie_whose_split_another_took_changes_nothing(world):
    zombie, other = both(world)
    assert zombie.go_to("before its commit")
    world.end_leases()
    other.go_to("its end")
    assert other.error is None
    assert took(world)["drafts[2-3]"].split()[-1] in ("0-0", "1-1")
    zombie.go_to("its end")
    assert isinstance(zombie.error, Fenced)
    world.check()
    assert times_computed(world) == [1, 1, 1, 1]
    world.bring_to_an_end()


def test_what_fails_by_itself_fails_in_its_own_task_and_in_no_other(world):
    world.write_source(0, (5000,))  # its gate says no
    first, second = both(world)
    while not (first.ended and second.ended):
        first.step()
        second.step()
    assert first.error is not None
    assert second.error is None, second.error
    assert took(world)["drafts[2-3]"] in ("2-2 3-3", "2-2 3-3 1-1")
    world.check()


@pytest.mark.parametrize("seed", range(20))
def test_in_whatever_order_they_go_and_die_each_split_is_published_once_and_right(tmp_path, seed):
    world, random = World(tmp_path), Random(seed)
    tasks = [world.begin(STAGE, cut=3, part=part, asks=True) for part in range(3)]
    kills = 3
    for _ in range(3000):
        if all(task.ended for task in tasks):
            break
        place = random.choice([number for number, task in enumerate(tasks) if not task.ended])
        if kills and random.random() < 0.02:
            kills -= 1
            tasks[place].kill()
            tasks[place] = world.begin(STAGE, cut=3, part=place, asks=True)
        tasks[place].step()
    world.check()
    assert [task.error for task in tasks] == [None, None, None]
    assert max(times_computed(world)) == 1
    assert world.ledger.runs.get(RUN).state is RunState.RUNNING, "the other stage is still to come"
    world.bring_to_an_end()
