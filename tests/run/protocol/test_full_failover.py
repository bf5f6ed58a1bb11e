"""`failover: full` while several tasks are at work: all is made again once, by whoever still comes by."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest
from tests.run.protocol.paper_spark import Amounts, PaperEngine, PaperFrames, PaperSession
from tests.run.protocol.world import PARTITIONS, RUN, World

from stagehold.model.records import RunState
from stagehold.run.functions.stage_inputs import Reading
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.run_settings import Failover

pytestmark = pytest.mark.slow
HALVES = 2


class Broken(Exception):
    """What a stage function raises, once for each entry."""

    waiting: ClassVar[list[tuple[str, int]]] = []


class BreakingFrames(PaperFrames):
    """Frames whose function raises where `Broken` says so."""

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> dict[int, Amounts]:
        for place in [(stage.name, partition) for partition in partitions]:
            if place in Broken.waiting:
                Broken.waiting.remove(place)
                raise Broken(place)
        return super().output(stage, partitions)


class BreakingSession(PaperSession):
    """A session whose frames break."""

    def frames(self, reading: Reading) -> PaperFrames:
        return BreakingFrames(reading)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, PaperEngine(BreakingSession()))
    world.pipelines = {
        tasks: pipeline.model_copy(update={"failover": Failover.FULL}) for tasks, pipeline in world.pipelines.items()
    }
    return world


def fail(world: World, stage: str, part: int) -> None:
    Broken.waiting.append((stage, HALVES * part))
    failing = world.begin(stage, HALVES, part)
    failing.go_to("its end")
    assert failing.error is not None
    assert not Broken.waiting


def finish(world: World, stage: str, part: int) -> None:
    attempt = world.begin(stage, HALVES, part)
    attempt.go_to("its end", most=1000)
    assert attempt.ended
    assert attempt.error is None, attempt.error
    world.check()


def times(world: World, stage: str) -> list[int]:
    """How often the run recorded each partition."""
    recorded = Counter(
        partition.partition for partition in world.ledger.partitions.of_run(RUN) if partition.cell.stage == stage
    )
    return [recorded[partition] for partition in range(PARTITIONS)]


def test_who_was_under_way_when_another_failed_begins_again(world):
    slow = world.begin("drafts", HALVES, 0)
    assert slow.go_to("before its commit"), slow.error
    fail(world, "drafts", 1)
    finish(world, "drafts", 1)
    slow.go_to("its end", most=1000)
    assert slow.error is None, slow.error
    assert times(world, "drafts") == [2, 2, 1, 1]
    for part in range(HALVES):
        finish(world, "prints", part)
    assert (times(world, "drafts"), times(world, "prints")) == ([2, 2, 1, 1], [1, 1, 1, 1])
    assert world.ledger.runs.get(RUN).state is RunState.FINISHED


def test_who_ends_last_makes_again_what_others_had_finished(world):
    for part in range(HALVES):
        finish(world, "drafts", part)
    finish(world, "prints", 0)
    fail(world, "prints", 1)
    finish(world, "prints", 1)
    assert (times(world, "drafts"), times(world, "prints")) == ([2, 2, 2, 2], [2, 2, 1, 1])
    assert world.ledger.runs.get(RUN).state is RunState.FINISHED


def test_each_failure_counts_once(world):
    for part in range(HALVES):
        finish(world, "drafts", part)
    for _ in range(2):
        fail(world, "prints", 0)
    for part in range(HALVES):
        finish(world, "prints", part)
    assert times(world, "drafts") == [3, 3, 3, 3]  # before the first, before the second, and after it
    assert times(world, "prints") == [1, 1, 1, 1]


def test_when_the_last_one_fails_at_what_others_had_finished_its_retry_ends_the_run(world):
    for part in range(HALVES):
        finish(world, "drafts", part)
    finish(world, "prints", 0)
    fail(world, "prints", 1)
    last = world.begin("prints", HALVES, 1)
    Broken.waiting.append(("prints", 0))
    last.go_to("its end", most=1000)
    assert last.error is not None
    assert not Broken.waiting
    assert world.ledger.runs.get(RUN).state is not RunState.FINISHED
    finish(world, "prints", 1)
    assert world.ledger.runs.get(RUN).state is RunState.FINISHED
    assert (times(world, "drafts"), times(world, "prints")) == ([3, 3, 3, 3], [2, 2, 2, 2])
