from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.records import Attempt, AttemptState
from stagehold.plan.waves.interval import LONGEST, SHORTEST, AdaptiveInterval, DeclaredInterval, adaptive_interval

START = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = 3600.0


@pytest.mark.parametrize(
    ("failures", "worked", "commit", "expected"),
    [
        (0, 0, None, 415.7),  # a commit of 1 s and a failure a day, until something is known
        (0, 0, 0.25, 207.8),  # cheap commits: shorter waves
        (0, 99 * 24 * HOUR, 0.25, 600.0),  # hardly ever fails: as long as is allowed
        (23, 0, 0.25, 42.4),  # a failure an hour
        (1000, HOUR, 0.1, 10.0),  # fails all the time: as short as is allowed
        (0, 0, 0.0, 10.0),  # commits for nothing
    ],
)
def test_young_and_daly(failures, worked, commit, expected):
    assert AdaptiveInterval(failures, worked).seconds(commit) == pytest.approx(expected, abs=0.05)


@given(st.integers(0, 10**6), st.floats(0, 1e12), st.one_of(st.none(), st.floats(0, 1e9)))
def test_the_interval_stays_within_bounds(failures, worked, commit):
    assert SHORTEST <= AdaptiveInterval(failures, worked).seconds(commit) <= LONGEST


def test_a_declared_interval_is_what_it_is():
    assert DeclaredInterval(0.5).seconds(100.0) == 0.5


def test_the_reason_names_what_was_measured():
    assert (
        AdaptiveInterval(2, 36_000.0).reason(0.5) == "auto: a commit costs 0.50 s (measured), 2 failures in 10.0 "
        "h of recorded work"
    )
    assert "1.00 s (assumed)" in AdaptiveInterval(0, 0).reason(None)


def attempt(epoch, state=AttemptState.FINISHED, seconds=HOUR, failure_class=None, region="joined"):
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    facts = {"ended_at": ended, "failure_class": failure_class}
    return Attempt(f"a{epoch}", "run", "sales", "i", region, epoch, state, START, **facts)


@pytest.mark.parametrize(
    ("attempts", "failures", "hours"),
    [
        ([], 0, 0),
        ([attempt(1), attempt(2)], 0, 2),
        ([attempt(1, AttemptState.FAILED), attempt(2)], 1, 2),
        ([attempt(1, AttemptState.FAILED, failure_class="environment")], 1, 1),
        ([attempt(1, AttemptState.FAILED, failure_class="non_recoverable")], 0, 1),
        ([attempt(1, AttemptState.CANCELED)], 0, 1),
        ([attempt(1, AttemptState.RUNNING, None)], 0, 0),  # it works
        ([attempt(1, AttemptState.RUNNING, None), attempt(2)], 1, 1),  # it was killed: a newer one followed
        ([attempt(1, AttemptState.RUNNING, None), attempt(2, region="top")], 0, 1),
        ([attempt(1, seconds=-5)], 0, 0),
    ],
)
def test_the_ledger_tells_how_often_work_is_lost(attempts, failures, hours):
    assert adaptive_interval(attempts) == AdaptiveInterval(failures, hours * HOUR)
