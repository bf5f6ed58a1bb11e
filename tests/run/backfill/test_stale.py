"""Which intervals are stale after sources, code or a suite changed, and that `--only stale` computes exactly these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.run.backfill.paper_backfill import STAGES, PaperBackfill

from stagehold.model.backfill import BackfillChoice, Only
from stagehold.plan.backfill.backfill_plan import StaleInterval, stale_intervals
from stagehold.run.backfill.backfill_planning import plan_stale

pytestmark = pytest.mark.slow

FIRST, SECOND = "2026-11-01", "2026-11-02"


@pytest.fixture
def world(tmp_path) -> Iterator[PaperBackfill]:
    """Two dates, of which all is there."""
    world = PaperBackfill(tmp_path)
    for date in (FIRST, SECOND):
        world.nights.run(date)
    yield world
    world.nights.ledger.close()


def found(world: PaperBackfill, *dates: str) -> tuple[StaleInterval, ...]:
    nights = world.nights
    return stale_intervals(plan_stale(dates or (FIRST, SECOND), nights.pipeline, nights.ledger, nights.settings))


def told(world: PaperBackfill) -> dict[str, dict[str, int]]:
    return {one.interval: {stage.stage: stage.partitions for stage in one.stages} for one in found(world)}


def test_nothing_is_stale_while_nothing_changes(world) -> None:
    assert found(world) == ()


def test_a_source_that_changed_makes_its_partition_stale_down_to_the_last_stage(world) -> None:
    world.nights.write_source(1, 40)
    assert told(world) == {date: dict.fromkeys(STAGES, 1) for date in (FIRST, SECOND)}
    assert "source" in found(world, FIRST)[0].stages[0].reason


def test_code_that_changed_makes_its_stage_and_what_reads_it_stale(world) -> None:
    world.nights.rewrite("edits", "return drafts")
    assert told(world)[FIRST] == {"edits": 3, "prints": 3}
    assert "code" in found(world, FIRST)[0].stages[0].reason


def test_a_suite_that_changed_has_data_judged_again(world) -> None:
    suite = Path(world.nights.settings.suites, "sound.yaml")
    suite.write_text(suite.read_text().replace("min_value: 0", "min_value: -5"))
    assert told(world)[FIRST] == {"drafts": 3}
    assert "its gate sound changed" in found(world, FIRST)[0].stages[0].reason


def test_what_is_told_is_what_a_backfill_of_it_computes(world) -> None:
    world.nights.write_source(1, 40)
    world.nights.run(FIRST, run="again")
    assert told(world) == {SECOND: dict.fromkeys(STAGES, 1)}
    outcomes = world.run(world.begin(BackfillChoice(FIRST, SECOND, only=Only.STALE)))
    assert world.computed(outcomes) == {(SECOND, stage): frozenset({1}) for stage in STAGES}
    assert found(world) == ()


def test_an_interval_outside_the_schedule_is_looked_at_as_well(world) -> None:
    at_noon = "2026-11-02T12:00:00Z"
    world.nights.run(at_noon)
    world.nights.write_source(0, 7)
    assert [one.interval for one in found(world, SECOND, at_noon)] == [SECOND, at_noon]
