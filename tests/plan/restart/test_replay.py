"""Stories of a run as its attempts tell them, and what follows from each failure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from stagehold.model.records import Attempt, AttemptState, FailureClass, RunState
from stagehold.plan.restart.replay import RestartRules, first_delay, replay_failures, run_state_after
from stagehold.plan.restart.rules import FENCED
from stagehold.spec.settings.restart import RestartSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
FIXED = {"strategy": "fixed-delay", "attempts": 1, "delay": "3s"}


def attempt(region, began, ended=None, state=AttemptState.FAILED, kind=FailureClass.RECOVERABLE, rule="anything_else"):
    """One attempt from second ``began`` to second ``ended``; without an end it still runs."""
    return Attempt(
        attempt_id=f"{region}.{began}",
        run_id="r",
        pipeline="p",
        interval="i",
        region=region,
        epoch=began + 1,
        state=AttemptState.RUNNING if ended is None else state,
        started_at=START + timedelta(seconds=began),
        ended_at=None if ended is None else START + timedelta(seconds=ended),
        failure_class=kind if state is AttemptState.FAILED else None,
        failure_rule=rule if state is AttemptState.FAILED else None,
    )


def rules(limit=2, run_id="r", **settings):
    return RestartRules(RestartSettings(**settings), limit, run_id)


def restarts(attempts, /, **settings):
    """Whether each failure restarts, in the order the attempts are given."""
    decisions = replay_failures(attempts, rules(**settings))
    return [decisions[attempt.attempt_id].restart for attempt in attempts if attempt.attempt_id in decisions]


def seconds(attempts, /, **settings):
    decisions = replay_failures(attempts, rules(**settings))
    return [decisions[attempt.attempt_id].delay.total_seconds() for attempt in attempts]


ONE_AFTER_THE_OTHER = [attempt("a", 0, 10), attempt("a", 20, 30), attempt("a", 40, 50), attempt("a", 60, 70)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"strategy": "none"}, [False] * 4),
        ({"strategy": "fixed-delay", "attempts": 2}, [True, True, False, True]),  # the fourth belongs to a new life
        ({"strategy": "failure-rate", "failures": 2, "interval": "1min", "limit": 9}, [True, True, False, True]),
        ({"strategy": "failure-rate", "failures": 2, "interval": "30s", "limit": 9}, [True] * 4),
        ({"strategy": "failure-rate", "failures": 2, "interval": "30s", "limit": 1}, [True, False, True, False]),
        ({"strategy": "exponential-delay", "attempts": 3, "limit": 1}, [True, True, True, False]),
        ({"limit": 2}, [True, True, False, True]),
    ],
)
def test_the_strategy_decides_about_each_failure(settings, expected):
    assert restarts(ONE_AFTER_THE_OTHER, **settings) == expected


def unbegun(began, ended, kind=FailureClass.ENVIRONMENT):
    """A try of region a that ended before it had a lease."""
    return replace(attempt("a", began, ended, kind=kind), attempt_id=f"unbegun.{began}", epoch=0)


def test_five_tries_to_begin_end_a_life_whatever_the_strategy_and_cost_it_nothing():
    tries = [unbegun(10 * number, 10 * number + 1) for number in range(6)]
    assert restarts(tries, **FIXED) == [True, True, True, True, False, True]  # the sixth belongs to a new life
    assert seconds(tries[:4], **FIXED) == [3, 12, 48, 192]
    assert restarts([*tries[:4], attempt("a", 40, 41)], **FIXED) == [True] * 5
    assert restarts([unbegun(0, 1), attempt("b", 2, 3)], **FIXED) == [True, True]


def test_only_tries_to_begin_that_follow_each_other_are_counted_together():
    done = attempt("a", 45, 46, state=AttemptState.FINISHED)
    tries = [unbegun(10 * number, 10 * number + 1) for number in range(6)]
    assert restarts([*tries[:4], done, *tries[4:]], **FIXED) == [True, True, True, True, False, True]
    assert (
        restarts(
            [*tries[:3], replace(done, started_at=tries[2].ended_at, ended_at=tries[3].started_at), *tries[3:]], **FIXED
        )
        == [True] * 6
    )


@pytest.mark.parametrize(
    ("settings", "kind"), [({"strategy": "none"}, FailureClass.ENVIRONMENT), (FIXED, FailureClass.NON_RECOVERABLE)]
)
def test_no_try_follows_one_that_could_not_begin_where_no_other_failure_may_be_followed_by_one(settings, kind):
    assert restarts([unbegun(0, 1, kind)], **settings) == [False]


def test_a_run_whose_newest_try_could_not_begin_has_failed_until_a_later_one_finishes():
    first, blocked = attempt("a", 0, 10, state=AttemptState.FINISHED), unbegun(20, 30, FailureClass.NON_RECOVERABLE)
    later = replace(attempt("a", 40, 50, state=AttemptState.FINISHED), epoch=2)
    told = [first, blocked]
    assert run_state_after([("a", None)], told, replay_failures(told, rules(**FIXED))) is RunState.FAILED
    told = [first, blocked, later]
    assert run_state_after([("a", None)], told, replay_failures(told, rules(**FIXED))) is RunState.FINISHED


def test_delays_are_the_strategys_and_every_replay_draws_the_same():
    assert seconds(ONE_AFTER_THE_OTHER[:1], **FIXED) == [3]
    assert seconds(ONE_AFTER_THE_OTHER, initial="2s", jitter=0.0, limit=9) == [2, 3, 4.5, 6.75]
    jittered = seconds(ONE_AFTER_THE_OTHER, initial="2s", jitter=0.5, limit=9)
    assert jittered == seconds(ONE_AFTER_THE_OTHER, initial="2s", jitter=0.5, limit=9)
    assert jittered[:2] == seconds(ONE_AFTER_THE_OTHER[:2], initial="2s", jitter=0.5, limit=9)
    assert jittered != seconds(ONE_AFTER_THE_OTHER, initial="2s", jitter=0.5, limit=9, run_id="another")


def test_failures_of_all_regions_count_against_the_runs_strategy():
    assert restarts([attempt("a", 0, 10), attempt("b", 0, 11)], **FIXED) == [True, False]


def test_the_limit_of_an_unlimited_strategy_is_each_regions_own():
    failures = [attempt("a", 0, 10), attempt("b", 0, 20), attempt("a", 30, 40)]
    assert restarts(failures, limit=1) == [True, True, False]


def test_a_failure_before_the_planned_restart_waits_for_the_same_restart():
    assert seconds([attempt("a", 0, 10), attempt("b", 0, 12)], initial="5s", jitter=0.0) == [5, 3]


def test_what_cannot_be_recovered_from_ends_the_run_and_costs_nothing():
    fatal = attempt("a", 0, 10, kind=FailureClass.NON_RECOVERABLE)
    assert restarts([fatal], **FIXED) == [False]
    assert restarts([fatal, attempt("b", 0, 11)], **FIXED) == [False, True]


def test_an_attempt_that_was_overtaken_says_nothing_about_the_run():
    zombie = attempt("a", 0, 50, kind=FailureClass.NON_RECOVERABLE, rule=FENCED)
    assert replay_failures([zombie], rules(**FIXED)) == {}
    assert restarts([zombie, attempt("a", 20, 60)], **FIXED) == [True]


def test_a_resumed_run_starts_from_nothing_after_a_cancel_too():
    cancelled = attempt("a", 20, 30, state=AttemptState.CANCELED)
    assert restarts([attempt("a", 0, 10), cancelled, attempt("a", 40, 50)], **FIXED) == [True, True]
    under_way = attempt("b", 25, 60)  # when the run was cancelled
    assert restarts([attempt("a", 0, 10), cancelled, under_way], **FIXED) == [True, False]


def test_missing_data_is_computed_again_at_once_whatever_was_counted():
    missing = attempt("a", 0, 10, kind=FailureClass.PARTITION_DATA_MISSING)
    decision = replay_failures([missing], rules(**FIXED))["a.0"]
    assert (decision.restart, decision.delay) == (True, timedelta(0))
    assert restarts([missing, attempt("a", 20, 30)], **FIXED) == [True, True]


def test_reasons_are_for_people():
    decisions = replay_failures(ONE_AFTER_THE_OTHER, rules(limit=1))
    assert decisions["a.0"].reason.startswith("restart 1 of the run, in ")
    assert decisions["a.20"].reason == "a has restarted 1 times, as often as STAGEHOLD_ATTEMPT_RETRIES allows"
    assert (
        replay_failures(ONE_AFTER_THE_OTHER, rules(strategy="none"))["a.0"].reason == "strategy none allows no "
        "further restart after 0"
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, 1), ({"initial": "2s"}, 2), (FIXED, 3), ({"strategy": "fixed-delay", "delay": "0s"}, 0)],
)
def test_the_first_delay(settings, expected):
    assert first_delay(RestartSettings(**settings)).total_seconds() == expected


DONE, FAILED, CANCELED = AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED
FATAL = attempt("a", 0, 10, kind=FailureClass.NON_RECOVERABLE)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([], RunState.RUNNING),
        ([attempt("a", 0, 10, DONE)], RunState.RUNNING),
        ([attempt("a", 0, 10, DONE), attempt("b", 10, 20, DONE)], RunState.FINISHED),
        ([attempt("a", 0, 10), attempt("b", 10, 20, DONE)], RunState.RESTARTING),
        ([attempt("a", 0, 10), attempt("a", 12)], RunState.RUNNING),
        ([FATAL, attempt("b", 10, 20, DONE)], RunState.FAILED),
        ([FATAL, attempt("a", 20, 30, DONE), attempt("b", 10, 20, DONE)], RunState.FINISHED),
        ([attempt("a", 0, 10, CANCELED), attempt("b", 10, 20, DONE)], RunState.CANCELED),
    ],
)
def test_the_state_of_a_run_follows_from_its_newest_attempts(attempts, expected):
    assert run_state_after([("a", None), ("b", None)], attempts, replay_failures(attempts, rules(**FIXED))) is expected
