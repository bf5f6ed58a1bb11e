"""Intervals that are pinned: who may say so of which, and that releases and deletions respect it."""

from __future__ import annotations

import pytest
from tests.run.clearing.nights import PIPELINE, STAGES, Nights

from stagehold.chronicle.chronicle import read_chronicle
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_ledger
from stagehold.errors import IntervalPinned, UnknownName
from stagehold.ledger import Ledger
from stagehold.model.standing import PartitionState
from stagehold.run.clearing.cleared_interval import ClearedInterval
from stagehold.run.clearing.output_release import end_of
from stagehold.run.intervals.interval_deletion import IntervalDeletion
from stagehold.run.intervals.pinning import pin_intervals, released_before, unpin_intervals
from stagehold.spec.settings.run_settings import ReleasePolicy

pytestmark = pytest.mark.slow

DAYS = [f"2026-11-{day}" for day in range(20, 26)]
THERE, GONE = {PartitionState.CONSUMABLE}, {PartitionState.RELEASED}
ALL_THERE = dict.fromkeys(STAGES, THERE)
ONLY_RESULTS = {"drafts": GONE, "edits": GONE, "prints": THERE}


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def pin(nights: Nights, *days: str) -> None:
    pin_intervals(PIPELINE, days, "ann", "for the audit", nights.ledger)


def unpin(nights: Nights, *days: str) -> None:
    unpin_intervals(PIPELINE, days, "bob", "", nights.ledger)


def run_all(nights: Nights, *days: str) -> None:
    for day in days:
        nights.run(day)


def test_a_pinned_interval_keeps_its_outputs_and_the_others_go_as_they_would(nights):
    run_all(nights, *DAYS[:2])
    pin(nights, DAYS[0])
    run_all(nights, *DAYS[2:6])
    states = [nights.states(day) for day in DAYS[:6]]
    assert states == [ALL_THERE, ONLY_RESULTS, ONLY_RESULTS, ALL_THERE, ALL_THERE, ALL_THERE]
    unpin(nights, DAYS[0])
    nights.collect()
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    nights.check()


def test_outputs_that_go_at_once_stay_as_well(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    attempt = nights.begin(DAYS[0], "drafts")
    attempt.go_to("its end")
    pin(nights, DAYS[0])
    nights.run(DAYS[0])
    assert nights.states(DAYS[0]) == ALL_THERE


def test_collecting_garbage_leaves_it_and_says_what_keeps_it(nights):
    nights.run(DAYS[0])
    pin(nights, DAYS[0])
    run_all(nights, *DAYS[1:4])
    for dry_run in (True, False):
        found = nights.collect(dry_run=dry_run)
        (kept,) = found.kept
        assert (kept.interval, kept.files, kept.pin.reason) == (DAYS[0], 6, "for the audit")
        assert f"`stagehold intervals unpin {PIPELINE} {DAYS[0]}` lets them go." in str(kept)
        assert DAYS[0] not in {one.interval for one in found.cleared}
    assert nights.states(DAYS[0]) == ALL_THERE
    unpin(nights, DAYS[0])
    assert nights.collect().kept == ()
    assert nights.states(DAYS[0]) == ONLY_RESULTS


def test_a_pin_that_comes_while_a_release_waits_for_its_leases_is_in_time(nights):
    nights.run(DAYS[0])
    release = end_of(ClearedInterval.of(nights.pipeline, DAYS[0], nights.workplace))
    held = release.place.held

    def pinned_meanwhile(stages):
        pin(nights, DAYS[0])
        return held(stages)

    release.place.held = pinned_meanwhile
    assert release.carry_out() == ()
    assert nights.states(DAYS[0]) == ALL_THERE


def test_deleting_it_is_refused_with_who_pinned_it_and_nothing_goes(nights):
    nights.run(DAYS[0])
    pin(nights, DAYS[0])
    deletion = IntervalDeletion.of(nights.pipeline, DAYS[0], nights.workplace, "bob")
    told = rf"is pinned by ann .*: for the audit\. Nothing was deleted\. `stagehold intervals unpin {PIPELINE} "
    for refused in (deletion.refuse, deletion.carry_out):
        with pytest.raises(IntervalPinned, match=told):
            refused()
    assert nights.states(DAYS[0]) == ALL_THERE
    assert nights.published(DAYS[0]) == nights.expected
    unpin(nights, DAYS[0])
    deletion.refuse()
    deletion.carry_out()
    assert nights.published(DAYS[0]) == []


def test_after_the_loss_of_a_ledger_it_is_still_pinned(nights, tmp_path):
    run_all(nights, *DAYS[:2])
    pin(nights, *DAYS[:2])
    unpin(nights, DAYS[1])
    with Ledger.open(f"sqlite:///{tmp_path}/rebuilt.db") as rebuilt:
        told = LakeKnowledge(read_chronicle(nights.settings.lake_uri)[0], {})
        rebuilt.facts.mend(lambda known: missing_in_ledger(known, told))
        assert rebuilt.pins.holding(PIPELINE) == nights.ledger.pins.holding(PIPELINE)
        assert list(rebuilt.pins.holding(PIPELINE)) == [DAYS[0]]


def test_only_what_is_on_record_is_pinned_and_only_what_is_pinned_is_let_go(nights):
    nights.run(DAYS[0])
    with pytest.raises(UnknownName, match=f"no interval on record of {PIPELINE} '2030-01-01'.*{DAYS[0]}"):
        pin(nights, DAYS[0], "2030-01-01")
    assert nights.ledger.pins.holding(PIPELINE) == {}
    pin(nights, DAYS[0], DAYS[0])
    with pytest.raises(UnknownName, match=f"no pinned interval of {PIPELINE} '{DAYS[1]}'.*{DAYS[0]}"):
        unpin(nights, DAYS[0], DAYS[1])
    assert list(nights.ledger.pins.holding(PIPELINE)) == [DAYS[0]]


def test_a_pin_knows_what_it_comes_too_late_for(nights):
    run_all(nights, *DAYS[:4])
    assert [released_before(PIPELINE, day, nights.ledger) for day in DAYS[:2]] == [6, 0]
