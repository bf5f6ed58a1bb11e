"""Leases of shares of a region, on both databases."""

from __future__ import annotations

import time

import pytest
from tests.ledger.samples import in_processes, record

from stagehold.errors import Fenced, LeaseHeld
from stagehold.model.partition_set import Share
from stagehold.plan.split.shares import shares

REGION = "sales/2024-01-01/joined"
LOW, HIGH = Share(0, 3), Share(4, 7)


def never(holder: str) -> bool:
    return False


def always(holder: str) -> bool:
    return True


def take(ledger, share, holder="me", may_seize=never, seconds=60.0):
    return ledger.leases.take(REGION, share, holder, seconds, may_seize)


def test_shares_of_one_cut_are_held_side_by_side_with_epochs_of_one_sequence(ledger):
    leases = [take(ledger, share, f"holder of {share}") for share in shares(16, 4)]
    assert [lease.epoch for lease in leases] == [1, 2, 3, 4]
    assert [lease.name for lease in leases] == [f"{REGION}/{share}" for share in shares(16, 4)]
    for lease in leases:
        ledger.leases.renew(lease, 60)


@pytest.mark.parametrize("newer", [None, Share(0, 7), Share(2, 5), Share(3, 3)])
def test_a_living_holder_of_a_part_keeps_it(ledger, newer):
    mine = take(ledger, LOW)
    with pytest.raises(LeaseHeld) as held:
        take(ledger, newer, "you")
    assert (held.value.region, held.value.holder) == (f"{REGION}/0-3", "me")
    assert ledger.leases.get(f"{REGION}/0-3") == mine


@pytest.mark.parametrize("newer", [None, Share(0, 7), Share(2, 5), Share(3, 3), LOW])
def test_taking_a_part_fences_whoever_had_it(ledger, newer):
    mine, other = take(ledger, LOW), take(ledger, Share(8, 11), "another")
    yours = take(ledger, newer, "you", may_seize=always)
    assert yours.epoch == 3
    with pytest.raises(Fenced):
        ledger.leases.renew(mine, 60)
    with pytest.raises(Fenced):
        ledger.partitions.record([record(0)], mine)
    if newer is not None:
        ledger.leases.renew(other, 60)


def test_the_whole_region_is_fenced_by_its_first_share_and_the_rest_stays_free_for_the_others(ledger):
    whole = take(ledger, None, "old cut", seconds=0.05)
    time.sleep(0.1)
    low, high = take(ledger, LOW, "new cut 1"), take(ledger, HIGH, "new cut 2")
    assert whole.epoch < low.epoch < high.epoch
    with pytest.raises(Fenced):
        ledger.leases.renew(whole, 60)


def test_an_earlier_try_is_told_from_others_by_its_holder(ledger):
    take(ledger, LOW, "mine, an earlier try")
    assert take(ledger, LOW, "mine", may_seize=lambda holder: holder.startswith("mine")).epoch == 2
    with pytest.raises(LeaseHeld):
        take(ledger, LOW, "yours", may_seize=lambda holder: holder.startswith("yours"))


def test_a_refused_taker_changes_nothing(ledger):
    take(ledger, HIGH, "dead")
    take(ledger, LOW, "alive")
    before = [ledger.leases.get(name) for name in (REGION, f"{REGION}/0-3", f"{REGION}/4-7")]
    with pytest.raises(LeaseHeld):
        take(ledger, None, "you", may_seize=lambda holder: holder == "dead")
    assert [ledger.leases.get(name) for name in (REGION, f"{REGION}/0-3", f"{REGION}/4-7")] == before


def test_every_share_that_was_ever_taken_is_known_where_it_overlaps(ledger):
    for share in (None, LOW, HIGH, Share(2, 5)):
        take(ledger, share, may_seize=always)
    assert ledger.leases.overlapping(REGION, LOW) == (None, Share(2, 5))
    assert ledger.leases.overlapping(REGION, Share(0, 1)) == (None, LOW)
    assert set(ledger.leases.overlapping(REGION, None)) == {LOW, HIGH, Share(2, 5)}
    assert ledger.leases.overlapping("sales/2024-01-01/joined_again", None) == ()


@pytest.mark.parametrize("share", [None, LOW, Share(2, 5)])
def test_who_works_on_any_part_of_a_region_is_told_until_the_end(ledger, share):
    assert ledger.leases.holder(REGION) is None
    lease = take(ledger, share)
    assert ledger.leases.holder(REGION) == lease.holder
    assert ledger.leases.holder("sales/2024-01-01/joined_again") is None
    ledger.leases.release(lease)
    assert ledger.leases.holder(REGION) is None


def test_names_that_only_look_alike_are_no_shares(ledger):
    for name in (f"{REGION}/other", f"{REGION}/other/0-3", f"{REGION}x/0-3", REGION.replace("j", "_")):
        ledger.leases.acquire(name, "somebody", 60)
    assert take(ledger, None).epoch == 1


@pytest.mark.slow
def test_of_many_takers_of_overlapping_shares_at_once_the_epochs_are_all_different(ledger):
    cuts = [None, *shares(16, 4), *shares(16, 8)]

    def seize(number: int) -> int:
        return take(ledger, cuts[number % len(cuts)], f"process {number}", may_seize=always).epoch

    epochs = in_processes(len(cuts), seize)
    assert sorted(epochs) == list(range(1, len(cuts) + 1))


def test_an_epoch_is_above_one_that_a_table_remembers(ledger):
    """As after the ledger was lost: nothing of the region is in it, or only what an older copy had."""
    taken = [ledger.leases.take(REGION, None, "me", 60.0, never, above=above).epoch for above in (7, 7, 3, 20)]
    assert taken == [8, 9, 10, 21]
    assert ledger.leases.take(REGION, LOW, "me", 60.0, never, above=30).epoch == 31
