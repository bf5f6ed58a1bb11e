"""Who owns what a run began with, when it goes, and what is lost with it: nothing."""

from __future__ import annotations

import pytest
from tests.run.clearing.nights import PIPELINE, STAGES, Nights
from tests.run.restoring.test_snapshots import DAY, NAME, OTHER, computed, save

from stagehold.errors import CheckpointCorrupt, SavepointInUse
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.model.choices import ClaimMode
from stagehold.model.states import RunEvent
from stagehold.run.checkpoints.coordination import leave_checkpoint
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.planning import snapshots
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.slow

CLAIM = {"claim_mode": ClaimMode.CLAIM}


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def named(nights: Nights) -> bool:
    return Savepoints(nights.settings.lake_uri).find(NAME) is not None


def dispose(nights: Nights) -> None:
    dispose_of(Savepoints(nights.settings.lake_uri).get(NAME), nights.workplace)
    snapshots._checkpoint.cache_clear()  # as in another process


def stored(nights: Nights, run: str, interval: str = DAY) -> StoredCheckpoints:
    return StoredCheckpoints(nights.settings.lake_uri, CheckpointedRun(PIPELINE, interval, f"{run}.{interval}"))


@pytest.mark.parametrize("interval", [DAY, OTHER])
def test_nothing_is_lost_with_a_savepoint_once_the_run_has_taken_it_over(nights, interval):
    nights.run(DAY)
    manifest = save(nights)
    nights.run(interval, "back", snapshot=manifest)
    dispose(nights)
    nights.collect()
    nights.check()
    nights.run(interval, "back", snapshot=manifest)
    assert computed(nights, "back", interval) == 0
    (number,) = stored(nights, "back", interval).numbers()
    nights.run(interval, "again", snapshot=stored(nights, "back", interval).address(number))
    reasons = {record.reason for stage in STAGES for record in nights.records(interval, stage)}
    assert reasons == {f"from checkpoint {number} of run back.{interval}"}
    assert nights.published(interval) == nights.expected
    nights.check()


def test_a_savepoint_is_not_thrown_away_while_a_run_needs_it(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.begin(OTHER, "drafts", "back", snapshot=manifest).go_to("its end", most=2000)
    with pytest.raises(SavepointInUse, match=r"needed by back\.2026-11-21, which began with it and goes on"):
        dispose(nights)
    assert named(nights)
    for stage in STAGES[1:]:
        nights.begin(OTHER, stage, "back", snapshot=manifest).go_to("its end", most=2000)
    dispose(nights)
    assert not named(nights)
    assert nights.published(OTHER) == nights.expected


def test_what_is_gone_before_it_was_taken_over_is_missed(nights):
    nights.run(DAY)
    manifest = save(nights)
    dispose(nights)
    with pytest.raises(CheckpointCorrupt, match="is missing"):
        nights.run(OTHER, "back", snapshot=manifest)


def test_a_checkpoint_of_another_run_is_not_collected_while_a_run_needs_it(nights):
    nights.run(DAY)
    nights.run(DAY, "newer")
    manifest = stored(nights, "r").address(1)
    nights.begin(DAY, "drafts", "back", snapshot=manifest).go_to("its end", most=2000)
    nights.collect()
    assert stored(nights, "r").numbers() == (1,)
    for stage in STAGES[1:]:
        nights.begin(DAY, stage, "back", snapshot=manifest).go_to("its end", most=2000)
    nights.collect()
    assert stored(nights, "r").numbers() == ()
    nights.check()


def test_what_a_run_does_not_claim_stays_its_users(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.run(DAY, "back", snapshot=manifest)
    nights.collect()
    assert named(nights)


@pytest.mark.parametrize("interval", [DAY, OTHER])
def test_a_claimed_savepoint_goes_when_a_checkpoint_of_the_run_replaces_it(nights, interval):
    nights.run(DAY)
    manifest = save(nights)
    for stage in STAGES[:-1]:
        nights.begin(interval, stage, "back", snapshot=manifest, **CLAIM).go_to("its end", most=2000)
    assert named(nights), "the run has not taken all of it over"
    nights.begin(interval, STAGES[-1], "back", snapshot=manifest, **CLAIM).go_to("its end", most=2000)
    assert not named(nights)
    assert 2 not in stored(nights, "r").numbers()
    snapshots._checkpoint.cache_clear()
    nights.collect()
    nights.run(interval, "back", snapshot=manifest, **CLAIM)
    assert computed(nights, "back", interval) == 0
    assert nights.published(interval) == nights.expected
    nights.check()


def test_a_claimed_savepoint_counts_among_those_that_are_retained(tmp_path):
    nights = Nights(tmp_path, retained=2)
    nights.run(DAY)
    manifest = save(nights)
    nights.run(DAY, "back", snapshot=manifest, **CLAIM)
    assert named(nights)
    nights.write_source(0, 9)
    nights.run(DAY, "back", snapshot=manifest, **CLAIM)
    assert not named(nights)
    nights.check()


def test_a_claimed_checkpoint_of_another_run_goes_as_well(nights):
    nights.run(DAY)
    nights.run(DAY, "back", snapshot=stored(nights, "r").address(1), **CLAIM)
    assert stored(nights, "r").numbers() == ()
    (gone,) = (checkpoint for checkpoint in nights.ledger.checkpoints.of_run(f"r.{DAY}"))
    assert gone.discarded_at
    nights.check()


def test_a_claimed_savepoint_stays_while_another_run_needs_it(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.begin(OTHER, "drafts", "slow", snapshot=manifest).go_to("its end", most=2000)
    nights.run(DAY, "back", snapshot=manifest, **CLAIM)
    assert named(nights)
    assert any("was claimed and stays for now" in line for line in nights.said)


def test_a_run_that_begins_with_a_checkpoint_of_its_own_keeps_it_until_it_has_taken_it_over(nights):
    nights.run(DAY)
    manifest = stored(nights, "r").address(1)
    nights.write_source(0, 9)
    nights.run(DAY, "r", snapshot=manifest, **CLAIM)
    assert stored(nights, "r").numbers() == (2,)
    assert nights.published(DAY) == nights.expected
    nights.check()


def test_a_run_that_failed_keeps_what_it_began_with_for_its_resume(nights):
    nights.run(DAY)
    manifest = stored(nights, "r").address(1)
    nights.begin(DAY, "drafts", "r", snapshot=manifest).go_to("its end", most=2000)
    for event in (RunEvent.FAIL, RunEvent.ALL_ENDED):
        nights.ledger.runs.apply(f"r.{DAY}", event)
    (asked,) = nights.ledger.restores.of_run(f"r.{DAY}")
    leave_checkpoint(RunRequest(nights.pipeline, f"r.{DAY}", DAY, {}, restore=asked), nights.workplace)
    assert stored(nights, "r").numbers() == (1, 2)
    snapshots._checkpoint.cache_clear()
    nights.run(DAY, "r", snapshot=manifest)
    assert stored(nights, "r").numbers() == (3,)
    assert nights.published(DAY) == nights.expected
    nights.check()
