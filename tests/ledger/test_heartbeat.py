from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time

import pytest
from tests.ledger.samples import impatient_ledger

from stagehold.errors import Fenced, LeaseHeld, LeaseLost
from stagehold.extensions.leadership import Leadership, LeadershipChange
from stagehold.ledger.leases import Heartbeat
from stagehold.model.pulse import Memory, Meter

pytestmark = pytest.mark.slow

NAME = "sales/2024-01-01/joined"


@pytest.fixture
def quick(tmp_path):
    """A ledger on SQLite whose transactions give up a lock quickly, and a way to lock it."""
    ledger = impatient_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", 0.02)
    locker = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, check_same_thread=False, timeout=5)
    yield ledger, locker
    locker.close()


def test_a_lease_outlives_its_seconds_while_the_heart_beats_and_not_longer(ledger):
    lease = ledger.leases.acquire(NAME, "me", 0.3)
    with Heartbeat(ledger.leases, lease, 0.3) as heartbeat:
        time.sleep(0.7)
        heartbeat.check()
        with pytest.raises(LeaseHeld):
            ledger.leases.acquire(NAME, "you", 1)
    time.sleep(0.35)
    assert ledger.leases.acquire(NAME, "you", 1).epoch == 2


def test_a_lease_gives_no_right_behind_what_it_was_held_for_and_is_not_revived(ledger):
    lease = ledger.leases.acquire(NAME, "me", 0.3)
    with Heartbeat(ledger.leases, lease, 0.3) as heartbeat:
        heartbeat.check()
    ledger.leases.release(lease)
    time.sleep(0.35)
    with pytest.raises(LeaseLost, match="what it was held for has ended"):
        heartbeat.check()
    assert not ledger.leases.alive(NAME)


def test_a_seized_lease_is_noticed(ledger):
    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.3), 0.3) as heartbeat:
        ledger.leases.take(NAME, None, "you", 60, lambda _: True)
        assert heartbeat.lost.wait(5)
        with pytest.raises(Fenced, match="fenced by epoch 2"):
            heartbeat.check()


def test_no_beat_comes_after_the_context(ledger):
    lease = ledger.leases.acquire(NAME, "me", 0.1)
    with Heartbeat(ledger.leases, lease, 0.1):
        time.sleep(0.15)
    ledger.leases.release(lease)
    released = ledger.leases.get(NAME)
    time.sleep(0.15)
    assert ledger.leases.get(NAME) == released
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("heartbeat")]


def test_an_outage_shorter_than_the_lease_is_survived(quick, caplog):
    ledger, locker = quick
    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.9), 0.9) as heartbeat:
        locker.execute("BEGIN IMMEDIATE")
        time.sleep(0.45)
        locker.execute("ROLLBACK")
        heartbeat.check()
        time.sleep(0.9)
        heartbeat.check()
    assert "Could not renew the lease" in caplog.text


def test_an_outage_longer_than_the_lease_loses_it_without_a_successor(quick):
    ledger, locker = quick
    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.3), 0.3) as heartbeat:
        locker.execute("BEGIN IMMEDIATE")
        assert heartbeat.lost.wait(5)
        locker.execute("ROLLBACK")
        with pytest.raises(LeaseLost, match="database is locked"):
            heartbeat.check()


def test_who_overslept_and_has_a_successor_learns_it_at_the_next_check(ledger):
    """Without the thread, as in a process that was frozen: the check itself asks."""
    heartbeat = Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.1), 0.1)
    time.sleep(0.15)
    ledger.leases.acquire(NAME, "you", 60)
    with pytest.raises(Fenced):
        heartbeat.check()


def test_who_overslept_and_has_no_successor_goes_on(ledger):
    heartbeat = Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.1), 0.1)
    time.sleep(0.15)
    heartbeat.check()
    assert not heartbeat.lost.is_set()


def test_a_frozen_process_finds_itself_fenced_when_it_is_thawed(ledger):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "child", 0.3), 0.3) as heartbeat:
            os.write(writing, b"holds ")
            time.sleep(0.2)
            try:
                deadline = time.monotonic() + 10
                while time.monotonic() < deadline:
                    heartbeat.check()
                    time.sleep(0.01)
            except Fenced:
                os.write(writing, b"fenced")
            finally:
                os._exit(0)
    assert os.read(reading, 6) == b"holds "
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.5)
    ledger.leases.acquire(NAME, "parent", 60)
    os.kill(child, signal.SIGCONT)
    assert os.read(reading, 6) == b"fenced"
    os.waitpid(child, 0)


def test_a_heartbeat_carries_what_its_meter_says(ledger):
    meter = Meter(lambda: Memory(client=7, server=9))
    meter.begin_stage("joined", 8)
    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.3), 0.3, meter) as heartbeat:
        meter.end_wave(2, rows=10, size=100, seconds=1.0)
        deadline = time.monotonic() + 5
        while (seen := ledger.leases.get(NAME).pulse) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        heartbeat.check()
    assert (seen.done, seen.partitions, seen.rows_a_second, seen.memory) == (2, 8, 10.0, Memory(7, 9))


def test_a_meter_that_fails_keeps_no_lease_from_being_renewed(ledger, caplog):
    def broken() -> Memory:
        raise OSError("no /proc here")

    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.3), 0.3, Meter(broken)) as heartbeat:
        time.sleep(0.7)
        heartbeat.check()
        assert ledger.leases.alive(NAME)
    assert "Could not tell how the work of" in caplog.text


def told_until(changes: list[LeadershipChange], what: Leadership) -> list[Leadership]:
    deadline = time.monotonic() + 5
    while what not in [change.what for change in changes] and time.monotonic() < deadline:
        time.sleep(0.02)
    return [change.what for change in changes]


def test_listeners_hear_of_a_lease_that_is_had_and_given_up(ledger):
    changes: list[LeadershipChange] = []
    lease = ledger.leases.acquire(NAME, "me", 60)
    with Heartbeat(ledger.leases, lease, 60, tell=changes.append):
        assert changes == [LeadershipChange(Leadership.GRANTED, NAME, "me", 1)]
    assert [change.what for change in changes] == [Leadership.GRANTED, Leadership.RELEASED]


def test_listeners_hear_of_a_lease_that_somebody_took_and_the_work_is_stopped(ledger):
    changes, stopped = list[LeadershipChange](), threading.Event()
    lease = ledger.leases.acquire(NAME, "me", 0.3)
    with Heartbeat(ledger.leases, lease, 0.3, tell=changes.append) as heartbeat:
        heartbeat.when_lost = stopped.set
        ledger.leases.take(NAME, None, "you", 60, lambda _: True)
        assert stopped.wait(5)
    assert told_until(changes, Leadership.REVOKED) == [Leadership.GRANTED, Leadership.REVOKED]
    assert "fenced by epoch 2" in changes[-1].reason


def test_who_cannot_renew_says_so_before_the_end_and_stops_at_the_end(quick):
    ledger, locker = quick
    changes, stopped = list[LeadershipChange](), threading.Event()
    lease = ledger.leases.acquire(NAME, "me", 0.9)
    began = time.monotonic()
    with Heartbeat(ledger.leases, lease, 0.9, tell=changes.append) as heartbeat:
        heartbeat.when_lost = stopped.set
        locker.execute("BEGIN IMMEDIATE")
        assert told_until(changes, Leadership.LATE)[-1] is Leadership.LATE
        assert not stopped.is_set()
        assert time.monotonic() - began < 0.9
        assert stopped.wait(5)
        locker.execute("ROLLBACK")
    assert told_until(changes, Leadership.LOST)[-1] is Leadership.LOST
    assert {change.what for change in changes} == {Leadership.GRANTED, Leadership.LATE, Leadership.LOST}


def test_a_listener_that_takes_long_delays_no_renewal(ledger):
    freed = threading.Event()

    def slow(change: LeadershipChange) -> None:
        if change.what is not Leadership.GRANTED:
            freed.wait(10)

    with Heartbeat(ledger.leases, ledger.leases.acquire(NAME, "me", 0.3), 0.3, tell=slow) as heartbeat:
        ledger.leases.take(NAME, None, "you", 60, lambda _: True)
        assert heartbeat.lost.wait(5)
    freed.set()
