"""Speculative attempts against the slow ones that they help, step by step on a real ledger and a real lake."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.protocol.world import World

from stagehold.spec.settings.run_settings import Speculation

pytestmark = pytest.mark.slow

EAGER_TO_HELP = Speculation(finished_share=0.5, multiplier=1.0, least_seconds=0.0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two tasks per region, of which the one that is done first helps the other."""
    made = World(tmp_path)
    made.pipelines[2] = made.pipelines[2].model_copy(update={"speculation": EAGER_TO_HELP})
    return made


@pytest.mark.parametrize(
    "place",
    [
        "after_lease",
        "before_fence",
        "a file is written",
        "after_measure",
        "before_publish",
        "before its commit",
        "after_publish",
    ],
)
def test_wherever_a_task_is_stuck_another_does_its_work_and_it_ends_well(world, place):
    slow = world.begin("drafts", cut=2, part=0)
    assert slow.go_to(place), slow.error
    helper = world.begin("drafts", cut=2, part=1)
    helper.go_to("its end")
    assert (helper.ended, helper.error) == (True, None)
    world.check()
    assert [record.partition for record in world.consumable("drafts")] == [0, 1, 2, 3]
    before = world.consumable("drafts")
    slow.go_to("its end")
    assert (slow.ended, slow.error) == (True, None)
    world.check()
    assert world.consumable("drafts") == before
    world.bring_to_an_end()


@pytest.mark.parametrize("place", ["a file is written", "after_measure"])
def test_a_slow_task_that_commits_first_wins(world, place):
    slow = world.begin("drafts", cut=2, part=0)
    assert slow.go_to("before its commit"), slow.error
    helper = world.begin("drafts", cut=2, part=1)
    assert helper.go_to("before_finish"), helper.error  # of its own share
    assert helper.go_to(place), helper.error
    slow.go_to("its end")
    assert slow.error is None
    before = world.consumable("drafts")
    helper.go_to("its end")
    assert (helper.ended, helper.error) == (True, None)
    assert world.consumable("drafts") == before
    world.check()
    world.bring_to_an_end()


def test_a_helper_that_dies_after_it_took_over_leaves_the_rest_to_the_next_try(world):
    slow = world.begin("drafts", cut=2, part=0)
    assert slow.go_to("before its commit"), slow.error
    helper = world.begin("drafts", cut=2, part=1)
    assert helper.go_to("before_finish"), helper.error
    assert helper.go_to("before_publish"), helper.error
    helper.kill()
    slow.go_to("waiting")
    world.check()
    world.end_leases()
    slow.go_to("its end")
    assert "took the work over and ended before it was done" in str(slow.error)
    world.check()
    world.bring_to_an_end()
