from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.plan.restart.strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart, restart_strategy
from stagehold.spec.settings.restart import RestartSettings

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def seconds(number):
    return timedelta(seconds=number)


def made(strategy, **parameters):
    return restart_strategy(RestartSettings(strategy=strategy, **parameters), random=Random(0))


def told(strategy, *failures):
    """After every failure, at so many seconds: may it restart, the delay in seconds, and is it a new attempt."""
    answers = []
    for moment in failures:
        strategy, new_attempt = strategy.after_failure(at(moment))
        answers.append((strategy.can_restart(at(moment)), strategy.delay(at(moment)).total_seconds(), new_attempt))
    return answers


STEADY = {"initial": seconds(1), "max": seconds(8), "multiplier": 2.0, "jitter": 0.0, "reset_after": seconds(100)}

# strategy, failures at seconds -> (may restart, delay, new attempt) each
TABLE = [
    ("none never restarts", made("none"), [0, 5], [(False, 0, True)] * 2),
    ("fixed-delay restarts once by default", made("fixed-delay"), [0, 5], [(True, 1, True), (False, 1, True)]),
    ("no attempts is no restart", made("fixed-delay", attempts=0), [0], [(False, 1, True)]),
    (
        "fixed-delay never forgets",
        made("fixed-delay", attempts=2, delay=seconds(3)),
        [0, 10**6, 10**7],
        [(True, 3, True)] * 2 + [(False, 3, True)],
    ),
    (
        "failure-rate lets one failure a minute pass by default",
        made("failure-rate"),
        [0, 30],
        [(True, 1, True), (False, 1, True)],
    ),
    ("exactly the interval is too fast", made("failure-rate"), [0, 60], [(True, 1, True), (False, 1, True)]),
    ("a longer gap is not", made("failure-rate"), [0, 60.001], [(True, 1, True)] * 2),
    (
        "failure-rate forgives",
        made("failure-rate", failures=2, delay=seconds(4)),
        [0, 1, 2, 100],
        [(True, 4, True)] * 2 + [(False, 4, True), (True, 4, True)],
    ),
    (
        "the delay grows up to the maximum",
        made("exponential-delay", **STEADY),
        [0, 10, 20, 30, 40],
        [(True, 1, True), (True, 2, True), (True, 4, True), (True, 8, True), (True, 8, True)],
    ),
    (
        "failures until the planned restart are one",
        made("exponential-delay", **STEADY),
        [0, 0.25, 1, 1.001],
        [(True, 1, True), (True, 0.75, False), (True, 0, False), (True, 2, True)],
    ),
    (
        "a quiet time after the planned restart forgets",
        made("exponential-delay", **STEADY),
        [0, 10, 112],
        [(True, 1, True), (True, 2, True), (True, 1, True)],
    ),
    (
        "a shorter one does not",
        made("exponential-delay", **STEADY),
        [0, 10, 111.999],
        [(True, 1, True), (True, 2, True), (True, 4, True)],
    ),
    (
        "attempts are limited",
        made("exponential-delay", **STEADY, attempts=1),
        [0, 10],
        [(True, 1, True), (False, 2, True)],
    ),
    (
        "and come back after a quiet time",
        made("exponential-delay", **STEADY, attempts=1),
        [0, 10, 200],
        [(True, 1, True), (False, 2, True), (True, 1, True)],
    ),
]


@pytest.mark.parametrize(("strategy", "failures", "answers"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_restarts_and_delays(strategy, failures, answers):
    assert told(strategy, *failures) == answers


@pytest.mark.parametrize(
    "strategy", [made("none"), made("fixed-delay"), made("failure-rate"), made("exponential-delay", attempts=1)]
)
def test_asking_never_consumes_an_attempt(strategy):
    strategy, _ = strategy.after_failure(at(0))
    before = (strategy.can_restart(at(0)), strategy.delay(at(0)))
    for _ in range(50):
        assert (strategy.can_restart(at(0)), strategy.delay(at(0))) == before


def test_the_delay_of_exponential_delay_is_what_is_left_until_the_planned_restart():
    strategy = made("exponential-delay", **STEADY)
    assert strategy.delay(at(0)) == seconds(0)
    strategy, _ = strategy.after_failure(at(0))
    assert [strategy.delay(at(moment)).total_seconds() for moment in (0, 0.4, 1, 7)] == [1, 0.6, 0, 0]


MADE = [
    ({"strategy": "none"}, NoRestart()),
    ({"strategy": "fixed-delay"}, FixedDelay(attempts=1, wait=seconds(1))),
    ({"strategy": "fixed-delay", "attempts": 4, "delay": seconds(2)}, FixedDelay(attempts=4, wait=seconds(2))),
    ({"strategy": "failure-rate"}, FailureRate(failures=1, interval=seconds(60), wait=seconds(1))),
    (
        {"strategy": "failure-rate", "failures": 3, "interval": seconds(9), "delay": seconds(0)},
        FailureRate(failures=3, interval=seconds(9), wait=seconds(0)),
    ),
    (
        {},
        ExponentialDelay(
            random=Random(0),
            initial=seconds(1),
            max=seconds(60),
            multiplier=1.5,
            jitter=0.1,
            reset_after=seconds(3600),
            attempts=None,
        ),
    ),
    ({**STEADY, "attempts": 7}, ExponentialDelay(random=Random(0), **STEADY, attempts=7)),
]


@pytest.mark.parametrize(("settings", "strategy"), MADE)
def test_parameters_reach_the_strategy_and_the_others_have_flinks_defaults(settings, strategy):
    assert restart_strategy(RestartSettings(**settings), random=Random(0)) == strategy


def test_the_given_chance_is_used():
    chance = Random(7)
    assert restart_strategy(RestartSettings(), random=chance).random is chance


def test_the_same_chance_gives_the_same_delays():
    def delays(seed):
        return told(restart_strategy(RestartSettings(), random=Random(seed)), *range(0, 1000, 100))

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
def test_a_delay_is_whole_milliseconds_within_its_bounds_and_its_jitter(
    initial, more, multiplier, jitter, attempt, seed
):
    unit = timedelta(milliseconds=1)
    first, most = initial * unit, (initial + more) * unit
    strategy = ExponentialDelay(
        random=Random(seed),
        initial=first,
        max=most,
        multiplier=multiplier,
        jitter=jitter,
        reset_after=seconds(0),
        attempts=None,
        attempt=attempt,
    )
    delay = strategy.after_failure(START)[0].delay(START)
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
