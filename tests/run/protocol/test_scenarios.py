"""Races that are worth a name, on a real ledger and a real lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.run.protocol.paper_spark import PaperEngine, PaperSession
from tests.run.protocol.world import RUN, STAGES, World

from stagehold.errors import Fenced
from stagehold.model.records import Attempt, AttemptState
from stagehold.run.planning.task import RegionTask

pytestmark = pytest.mark.slow


class NotingEngine(PaperEngine):
    """Notes who takes whom for dead: pairs of the epochs of an attempt and of one that died before."""

    def __init__(self) -> None:
        super().__init__()
        self.taken_for_dead: list[tuple[int, int]] = []

    @contextmanager
    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> Iterator[PaperSession]:
        self.taken_for_dead.extend((attempt.epoch, dead.epoch) for dead in died)
        with super().open(task, attempt, died) as session:
            yield session


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for stage in STAGES:
        world.begin(stage).go_to("its end")
    world.check()
    return world


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "others", [(), (3,)], ids=["there is nothing to do for its successor", "its successor has other partitions to do"]
)
def test_a_zombie_in_the_middle_of_its_commit_changes_nothing_once_its_successor_has_finished(world, stage, others):
    original = world.sources[0]
    world.write_source(0, (7, 8))
    if stage == "prints":
        world.begin("drafts").go_to("its end")
    zombie = world.begin(stage)
    assert zombie.go_to("before its commit"), zombie.error
    world.write_source(0, original)
    for partition in others:
        world.write_source(partition, (9,))
    world.end_leases()
    if stage == "prints":
        world.begin("drafts").go_to("its end")
    world.begin(stage).go_to("its end")
    world.check()
    zombie.go_to("its end")
    world.check()
    assert isinstance(zombie.error, Fenced)
    world.bring_to_an_end()


@pytest.mark.parametrize(
    "others", [(), (3,)], ids=["with nothing to do for its successor", "with other partitions to do"]
)
def test_what_a_zombie_commits_while_its_successor_is_about_to_fence_it_does_not_stay(world, others):
    original = world.sources[0]
    world.write_source(0, (7, 8))
    zombie = world.begin("drafts")
    assert zombie.go_to("before its commit")
    world.write_source(0, original)
    for partition in others:
        world.write_source(partition, (9,))
    world.end_leases()
    successor = world.begin("drafts")
    assert successor.go_to("before its fence")
    zombie.go_to("its end")
    assert isinstance(zombie.error, Fenced)
    world.check()
    successor.go_to("its end")
    world.check()
    world.bring_to_an_end()


def run_all(world):
    for stage in STAGES:
        attempt = world.begin(stage)
        attempt.go_to("its end")
        assert attempt.error is None, attempt.error
        world.check()


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("copied", [False, True])
def test_what_the_lake_knows_is_taken_over_and_not_computed_again_when_the_ledger_was_lost(world, copied, cut):
    if copied:
        world.copy_ledger()
    world.write_source(2, (7, 8))
    run_all(world)
    before, epochs = set(world.staged), [record.epoch for record in world.consumable("prints")]
    world.lose_ledger()
    for stage in STAGES:
        for part in range(cut):
            attempt = world.begin(stage, cut, part)
            attempt.go_to("its end")
            assert attempt.error is None, attempt.error
            world.check()
    assert set(world.staged) == before
    assert [record.epoch for record in world.consumable("prints")] == epochs
    world.bring_to_an_end()


@pytest.mark.parametrize("place", ["before its commit", "after its commit", "after_record"])
def test_a_ledger_that_is_lost_in_the_middle_of_an_attempt_loses_no_commit(world, place):
    for partition in range(4):
        world.write_source(partition, (30 + partition,))
    attempt = world.begin("drafts")
    assert attempt.go_to(place), attempt.error
    world.lose_ledger()
    run_all(world)
    commits = [key for key in world.staged if key[0].startswith("r.drafts")]
    assert len(commits) == 4 + 4 + (2 if place == "before its commit" else 0), commits
    world.bring_to_an_end()


@pytest.mark.parametrize("place", ["session", "before_write"])
@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("is_first", [True, False], ids=["without a table", "with a table"])
def test_a_zombie_that_begins_late_ends_nobody_who_has_begun_since(tmp_path, is_first, steps, place):
    engine = NotingEngine()
    world = World(tmp_path, engine)
    if not is_first:
        run_all(world)
        world.write_source(0, (7, 8))
    zombie = world.begin("drafts")
    assert zombie.go_to("after its lease")
    for _ in range(steps):
        zombie.step()
    engine.taken_for_dead.clear()
    world.end_leases()
    successor = world.begin("drafts")
    assert successor.go_to(place), successor.error
    zombie.go_to("its end")
    assert isinstance(zombie.error, Fenced), zombie.error
    states = {
        attempt.epoch: attempt.state for attempt in world.ledger.attempts.of_run(RUN) if attempt.region == "drafts"
    }
    assert states[max(states)] is not AttemptState.FAILED
    assert [pair for pair in engine.taken_for_dead if pair[0] < pair[1]] == []
    successor.go_to("its end")
    assert successor.error is None
    world.check()
    world.bring_to_an_end()
