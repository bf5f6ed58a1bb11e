from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.samples import START, run

from stagehold.model.records import RunState
from stagehold.model.states import Transition
from stagehold.run.checkpoints.coordinator_driver import Clock, life_began, until_next

LEAST, PERIOD = 100, 1000
BEGAN = round(START.timestamp() * 1000)


def due(now: int, run_id: str = "r") -> int:
    return now + until_next(run_id, START, now, least=LEAST, period=PERIOD)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text(min_size=1))
def test_whoever_asks_and_whenever_the_times_are_the_same(one, other, run_id):
    first, second = due(BEGAN + one, run_id), due(BEGAN + other, run_id)
    assert (second - first) % PERIOD == 0
    assert first >= BEGAN + one
    assert first - (BEGAN + one) < PERIOD or first == due(BEGAN, run_id)


def test_the_first_delay_is_random_between_the_pause_and_the_interval():
    delays = {due(BEGAN, f"run-{number}") - BEGAN for number in range(200)}
    assert len(delays) > 100
    assert min(delays) >= LEAST
    assert max(delays) <= PERIOD


def test_times_are_counted_from_when_the_run_was_last_started_anew():
    again = START + timedelta(hours=1)
    born = Transition("run-1", None, None, RunState.CREATED, None, START)
    assert life_began(run(), (born, replace(born, recorded_at=again))) == again
    assert life_began(run(), ()) == run().started_at


def test_the_clock_says_the_time():
    clock = Clock()
    assert abs(clock.now - datetime.now(UTC).timestamp() * 1000) < 100
