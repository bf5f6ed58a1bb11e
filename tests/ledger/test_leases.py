from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import in_processes

from stagehold.errors import Fenced, LeaseHeld, UnknownName
from stagehold.model.pulse import Memory, Pulse, Side

NAME = "sales/2024-01-01/joined"


def test_the_first_lease_has_epoch_one_and_ends_after_the_seconds_asked_for(ledger):
    lease = ledger.leases.acquire(NAME, "me", 60)
    assert (lease.name, lease.holder, lease.epoch) == (NAME, "me", 1)
    assert 55 < (lease.expires_at - datetime.now(UTC)).total_seconds() < 65
    assert ledger.leases.get(NAME) == lease


def test_a_lease_that_has_not_ended_is_held_and_stays_as_it_is(ledger):
    lease = ledger.leases.acquire(NAME, "me", 60)
    with pytest.raises(LeaseHeld) as refused:
        ledger.leases.acquire(NAME, "you", 60)
    assert (refused.value.region, refused.value.holder) == (NAME, "me")
    assert 50 < refused.value.seconds_left <= 60
    assert ledger.leases.get(NAME) == lease


def test_the_holder_itself_may_take_its_lease_anew(ledger):
    old = ledger.leases.acquire(NAME, "me", 60)
    assert ledger.leases.acquire(NAME, "me", 60).epoch == 2
    with pytest.raises(Fenced):
        ledger.leases.renew(old, 60)


def test_an_ended_lease_is_free(ledger):
    ledger.leases.acquire(NAME, "me", 0.05)
    time.sleep(0.1)
    assert ledger.leases.acquire(NAME, "you", 60).epoch == 2


def test_the_epoch_grows_after_a_release_too(ledger):
    epochs = []
    for holder in ("me", "you", "me"):
        lease = ledger.leases.acquire(NAME, holder, 60)
        ledger.leases.release(lease)
        epochs.append(lease.epoch)
    assert epochs == [1, 2, 3]


def test_seizing_takes_a_live_lease_and_fences_its_holder(ledger):
    mine = ledger.leases.acquire(NAME, "me", 60)
    yours = ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    assert (yours.holder, yours.epoch) == ("you", 2)
    with pytest.raises(Fenced) as fenced:
        ledger.leases.renew(mine, 60)
    assert (fenced.value.region, fenced.value.epoch, fenced.value.newer_epoch) == (NAME, 1, 2)
    assert ledger.leases.take("never seen", None, "you", 60, lambda _: True).epoch == 1


def test_renewing_moves_the_end_and_nothing_else(ledger):
    lease = ledger.leases.acquire(NAME, "me", 1)
    renewed = ledger.leases.renew(lease, 60)
    assert (renewed.name, renewed.holder, renewed.epoch) == (NAME, "me", 1)
    assert renewed.expires_at > lease.expires_at
    assert ledger.leases.get(NAME) == renewed


def test_a_lease_that_ended_unnoticed_can_be_renewed(ledger):
    lease = ledger.leases.acquire(NAME, "me", 0.05)
    time.sleep(0.1)
    ledger.leases.renew(lease, 60)
    with pytest.raises(LeaseHeld):
        ledger.leases.acquire(NAME, "you", 60)


def test_releasing_a_lease_that_was_taken_over_leaves_the_new_one_alone(ledger):
    mine = ledger.leases.acquire(NAME, "me", 60)
    yours = ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    ledger.leases.release(mine)
    assert ledger.leases.get(NAME) == yours


def test_an_unknown_lease_is_none_and_cannot_be_renewed(ledger):
    assert ledger.leases.get(NAME) is None
    lease = ledger.leases.acquire("another", "me", 60)
    with pytest.raises(UnknownName):
        ledger.leases.renew(type(lease)(NAME, "me", 1, lease.expires_at), 60)


def test_of_processes_that_race_for_a_free_lease_one_gets_it(ledger):
    def try_once(number: int) -> int | None:
        try:
            return ledger.leases.acquire(NAME, f"process {number}", 60).epoch
        except LeaseHeld:
            return None

    assert sorted(map(str, in_processes(8, try_once))) == ["1"] + ["None"] * 7


@pytest.mark.slow
def test_processes_that_keep_racing_hold_it_one_at_a_time_with_epochs_of_their_own(ledger, tmp_path):
    """Each holder enters a room that has place for one; were two inside, making the folder would fail."""
    room = tmp_path / "room"

    def keep_trying(number: int) -> list[int]:
        epochs: list[int] = []
        deadline = time.monotonic() + 30
        while len(epochs) < 5 and time.monotonic() < deadline:
            try:
                lease = ledger.leases.acquire(NAME, f"process {number}", 30)
            except LeaseHeld:
                time.sleep(0.002)
                continue
            room.mkdir()
            epochs.append(lease.epoch)
            room.rmdir()
            ledger.leases.release(lease)
        return epochs

    results = in_processes(8, keep_trying)
    assert all(isinstance(result, list) for result in results), results
    assert sorted(epoch for result in results for epoch in result) == list(range(1, 41))


def test_leases_that_have_not_ended_are_found_by_name_or_by_how_it_begins(ledger):
    for name in ("sales/day/joined", "Sales/day/joined", "sales_too/day/joined", "maintenance", "maintenance/day/x"):
        ledger.leases.acquire(name, "me", 60)
    ledger.leases.release(ledger.leases.acquire("sales/day/ended", "me", 60))
    assert [lease.name for lease in ledger.leases.alive_among(["maintenance"], ["sales/"], 10)] == [
        "maintenance",
        "sales/day/joined",
    ]
    assert len(ledger.leases.alive_among([], ["sales"], 1)) == 1
    assert ledger.leases.alive_among([], [], 10) == ()
    many = [f"pipeline_{number}/" for number in range(2_000)]
    assert len(ledger.leases.alive_among([], [*many, "sales/"], 1)) == 1


def test_a_lease_says_when_it_was_taken_and_renewed_and_what_its_holder_said_then(ledger):
    at_once = timedelta(milliseconds=10)  # PostgreSQL's clock goes on in a statement
    taken = ledger.leases.acquire(NAME, "me", 60)
    assert abs(taken.renewed_at - taken.taken_at) < at_once
    assert taken.pulse is None
    time.sleep(0.01)
    said = Pulse("joined", 3, Side.WRITING, 2, 8, 10, 100, 50, 5.0, 50.0, {Side.WRITING: 2.0}, Memory(7))
    renewed = ledger.leases.renew(taken, 60, said)
    assert (renewed.taken_at, renewed.pulse) == (taken.taken_at, said)
    assert renewed.renewed_at > taken.renewed_at
    assert ledger.leases.renew(taken, 60).pulse == said, "nothing new was said"
    again = ledger.leases.take(NAME, None, "you", 60, lambda _: True)
    assert abs(again.renewed_at - again.taken_at) < at_once
    assert again.pulse is None
    assert again.taken_at > renewed.taken_at
