from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.plan.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def seconds(number):
    return timedelta(seconds=number)


def told(strategy, *failures):
    """After every failure, at so many seconds: may it restart, the delay in seconds, and is it a new attempt."""
    answers = []
    for moment in failures:
        counted = strategy.after_failure(at(moment))
        strategy = counted.strategy
        answers.append((strategy.can_restart(at(moment)), strategy.delay(at(moment)).total_seconds(), counted.new_attempt))
    return answers


STEADY = {"initial": seconds(1), "max": seconds(8), "multiplier": 2.0, "jitter": 0.0, "reset_after": seconds(100)}

# strategy, failures at seconds -> (may restart, delay, new attempt) each
TABLE = [
    ("none never restarts", NoRestart(), [0, 5], [(False, 0, True)] * 2),
    ("fixed-delay restarts once by default", FixedDelay(), [0, 5], [(True, 1, True), (False, 1, True)]),
    ("no attempts is no restart", FixedDelay(attempts=0), [0], [(False, 1, True)]),
    ("fixed-delay never forgets", FixedDelay(attempts=2, wait=seconds(3)), [0, 10**6, 10**7], [(True, 3, True)] * 2 + [(False, 3, True)]),
    ("failure-rate lets one failure a minute pass by default", FailureRate(), [0, 30], [(True, 1, True), (False, 1, True)]),
    ("exactly the interval is too fast", FailureRate(), [0, 60], [(True, 1, True), (False, 1, True)]),
    ("a longer gap is not", FailureRate(), [0, 60.001], [(True, 1, True)] * 2),
    (
        "failure-rate forgives",
        FailureRate(failures=2, wait=seconds(4)),
        [0, 1, 2, 100],
        [(True, 4, True)] * 2 + [(False, 4, True), (True, 4, True)],
    ),
    (
        "the delay grows up to the maximum",
        ExponentialDelay(random=Random(0), **STEADY),
        [0, 10, 20, 30, 40],
        [(True, 1, True), (True, 2, True), (True, 4, True), (True, 8, True), (True, 8, True)],
    ),
    (
        "failures until the planned restart are one",
        ExponentialDelay(random=Random(0), **STEADY),
        [0, 0.25, 1, 1.001],
        [(True, 1, True), (True, 0.75, False), (True, 0, False), (True, 2, True)],
    ),
    (
        "a quiet time after the planned restart forgets",
        ExponentialDelay(random=Random(0), **STEADY),
        [0, 10, 112],
        [(True, 1, True), (True, 2, True), (True, 1, True)],
    ),
    (
        "a shorter one does not",
        ExponentialDelay(random=Random(0), **STEADY),
        [0, 10, 111.999],
        [(True, 1, True), (True, 2, True), (True, 4, True)],
    ),
    ("attempts are limited", ExponentialDelay(random=Random(0), **STEADY, attempts=1), [0, 10], [(True, 1, True), (False, 2, True)]),
    (
        "and come back after a quiet time",
        ExponentialDelay(random=Random(0), **STEADY, attempts=1),
        [0, 10, 200],
        [(True, 1, True), (False, 2, True), (True, 1, True)],
    ),
]


@pytest.mark.parametrize(("strategy", "failures", "answers"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_restarts_and_delays(strategy, failures, answers):
    assert told(strategy, *failures) == answers


@pytest.mark.parametrize("strategy", [NoRestart(), FixedDelay(), FailureRate(), ExponentialDelay(random=Random(0), attempts=1)])
def test_asking_never_consumes_an_attempt(strategy):
    strategy = strategy.after_failure(at(0)).strategy
    before = (strategy.can_restart(at(0)), strategy.delay(at(0)))
    for _ in range(50):
        assert (strategy.can_restart(at(0)), strategy.delay(at(0))) == before


def test_the_delay_of_exponential_delay_is_what_is_left_until_the_planned_restart():
    strategy = ExponentialDelay(random=Random(0), **STEADY)
    assert strategy.delay(at(0)) == seconds(0)
    strategy = strategy.after_failure(at(0)).strategy
    assert [strategy.delay(at(moment)).total_seconds() for moment in (0, 0.4, 1, 7)] == [1, 0.6, 0, 0]


def test_the_defaults_are_flinks():
    strategy = ExponentialDelay(random=Random(0))
    assert (strategy.initial, strategy.max, strategy.multiplier) == (seconds(1), seconds(60), 1.5)
    assert (strategy.jitter, strategy.reset_after, strategy.attempts) == (0.1, seconds(3600), None)
    assert FixedDelay() == FixedDelay(attempts=1, wait=seconds(1))
    assert FailureRate() == FailureRate(failures=1, interval=seconds(60), wait=seconds(1))


def test_the_same_chance_gives_the_same_delays():
    def delays(seed):
        return told(ExponentialDelay(random=Random(seed)), *range(0, 1000, 100))

    assert delays(1) == delays(1)
    assert delays(1) != delays(2)


@given(
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.floats(1, 100),
    st.floats(0, 1),
    st.integers(0, 10**6),
    st.integers(0),
)
def test_a_delay_is_whole_milliseconds_within_its_bounds_and_its_jitter(initial, more, multiplier, jitter, attempt, seed):
    unit = timedelta(milliseconds=1)
    first, most = initial * unit, (initial + more) * unit
    strategy = ExponentialDelay(initial=first, max=most, multiplier=multiplier, jitter=jitter, random=Random(seed), attempt=attempt)
    delay = strategy.after_failure(START).strategy.delay(START)
    assert first <= delay <= most
    assert delay % unit == timedelta(0)
    try:
        grown = initial * multiplier**attempt
    except OverflowError:
        grown = inf
    if grown == inf:
        assert delay == most
        return
    assert delay // unit >= min(initial + more, int(grown * (1 - jitter)) - 1)
    assert delay // unit <= max(initial, grown * (1 + jitter))
