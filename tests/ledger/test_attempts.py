from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

import pytest
from tests.ledger.samples import ATTEMPT_ENDS, attempt
from tests.postgres import BACK_ENDS

from stagehold.errors import IllegalTransition
from stagehold.ledger.attempts import Failure
from stagehold.model.partition_set import Share
from stagehold.model.records import UNBEGUN, Attempt, AttemptState, FailureClass
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.plan.restart.replay import RestartRules, replay_failures
from stagehold.spec.settings.restart import RestartSettings, RestartStrategy


class HourBehind(datetime):
    """The clock of a host that is an hour behind."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) - timedelta(hours=1)


def test_an_attempt_comes_back_as_it_was_started(ledger):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    assert ledger.attempts.of_run("run-1") == (attempt(),)


def test_starting_an_attempt_again_changes_nothing(ledger):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL, failure=Failure("killed"))
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    assert [found.state for found in ledger.attempts.of_run("run-1")] == [AttemptState.FAILED]


@pytest.mark.parametrize("ending", [AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED])
def test_the_first_end_of_an_attempt_stays(ledger, ending):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    assert ledger.attempts.apply(attempt().attempt_id, *ATTEMPT_ENDS[ending], failure=Failure("why")) is True
    (ended,) = ledger.attempts.of_run("run-1")
    assert (ended.state, ended.failure, ended.ended_at is None) == (ending, "why", False)
    assert ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL, failure=Failure("too late")) is False
    assert ledger.attempts.of_run("run-1") == (ended,)


def test_a_failure_keeps_its_class_and_the_rule_that_gave_it(ledger):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    failure = Failure("OSError: no space", FailureClass.ENVIRONMENT, "disk_full")
    ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL, failure=failure)
    (ended,) = ledger.attempts.of_run("run-1")
    assert (ended.failure_class, ended.failure_rule) == (FailureClass.ENVIRONMENT, "disk_full")


def test_to_what_was_never_made_nothing_happens(ledger):
    assert ledger.attempts.apply("unknown", AttemptEvent.FAIL) is False
    assert ledger.attempts.begin("unknown", 1) is None
    assert ledger.transitions.of_run("run-1") == ()


def test_an_attempt_waits_without_an_epoch_and_nobody_who_fences_sees_it(ledger):
    ledger.attempts.create(replace(attempt(), epoch=UNBEGUN), AttemptEvent.SCHEDULE)
    (waiting,) = ledger.attempts.of_run("run-1")
    assert (waiting.state, waiting.began) == (AttemptState.SCHEDULED, False)
    assert ledger.attempts.newest("sales", "2024-01-01", "joined") == ()
    begun = ledger.attempts.begin(waiting.attempt_id, 7)
    assert (begun.state, begun.epoch, begun.started_at > waiting.started_at) == (AttemptState.DEPLOYING, 7, True)
    assert ledger.attempts.newest("sales", "2024-01-01", "joined") == (begun,)


@pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="SQLite's ledger is for one machine, which has one clock")
@pytest.mark.parametrize("back_end", ["postgresql"])
def test_what_a_host_begins_behind_an_end_is_behind_it_though_its_clock_is_behind_too(ledger, monkeypatch):
    """Ends have the database's time. A resume whose attempt seemed to be older than the end before it got none of the
    restarts that a new life has.
    """
    once = RestartSettings(strategy=RestartStrategy.FIXED_DELAY, attempts=1, delay=timedelta(0))
    rules = RestartRules(once, 9, "run-1")
    for number in range(3):
        if number == 2:  # the strategy is at its end, and somebody resumes the run on another host
            monkeypatch.setattr("stagehold.ledger.attempts.datetime", HourBehind)
        made = replace(attempt(number), epoch=UNBEGUN, started_at=ledger.attempts.now())
        ledger.attempts.create(made, AttemptEvent.SCHEDULE)
        ledger.attempts.begin(made.attempt_id, number + 1)
        ledger.attempts.apply(made.attempt_id, AttemptEvent.FAIL, failure=Failure("OSError", FailureClass.ENVIRONMENT))
    found = ledger.attempts.of_run("run-1")
    assert [one.epoch for one in found] == [1, 2, 3]
    decisions = replay_failures(found, rules)
    assert [decisions[one.attempt_id].restart for one in found] == [True, False, True]


def test_an_attempt_that_was_taken_for_dead_does_not_begin(ledger):
    ledger.attempts.create(replace(attempt(), epoch=UNBEGUN), AttemptEvent.SCHEDULE, AttemptEvent.FAIL)
    assert ledger.attempts.begin(attempt().attempt_id, 7) is None
    (ended,) = ledger.attempts.of_run("run-1")
    assert (ended.state, ended.began) == (AttemptState.FAILED, False)


def test_a_step_that_is_skipped_is_refused_and_changes_nothing(ledger):
    ledger.attempts.create(attempt())
    with pytest.raises(IllegalTransition, match="that is created cannot become deploying"):
        ledger.attempts.begin(attempt().attempt_id, 7)
    assert [found.state for found in ledger.attempts.of_run("run-1")] == [AttemptState.CREATED]


def test_the_newest_attempt_has_the_highest_epoch_whatever_its_run(ledger):
    for one in (
        attempt(1),
        attempt(3, run_id="run-0"),
        attempt(2),
        attempt(9, interval="other"),
        attempt(9, region="other"),
    ):
        ledger.attempts.create(one, *UNTIL_RUNNING)
    assert ledger.attempts.newest("sales", "2024-01-01", "joined") == (attempt(3, run_id="run-0"),)
    assert ledger.attempts.newest("sales", "2024-01-01", "unknown") == ()


def test_of_shares_cut_differently_the_newest_attempt_of_every_partition_counts(ledger):
    for epoch, share in ((1, None), (2, "0-3"), (3, "4-7"), (4, "2-5")):
        ledger.attempts.create(replace(attempt(epoch), share=share), *UNTIL_RUNNING)

    def newest(share: Share) -> list[int]:
        return [found.epoch for found in ledger.attempts.newest("sales", "2024-01-01", "joined", share)]

    assert newest(Share(0, 1)) == [2]
    assert newest(Share(2, 4)) == [4]
    assert newest(Share(0, 7)) == [4, 3, 2]
    assert newest(Share(0, 9)) == [4, 3, 2, 1]


def test_attempts_of_a_run_are_in_the_order_they_began(ledger):
    for epoch in (3, 1, 2):
        ledger.attempts.create(attempt(epoch), *UNTIL_RUNNING)
    ledger.attempts.create(attempt(4, run_id="run-2"), *UNTIL_RUNNING)
    assert [found.epoch for found in ledger.attempts.of_run("run-1")] == [1, 2, 3]


def test_recent_attempts_of_a_pipeline_are_newest_first(ledger):
    for epoch in (3, 1, 2):
        ledger.attempts.create(attempt(epoch), *UNTIL_RUNNING)
    ledger.attempts.create(replace(attempt(4, run_id="run-2"), pipeline="costs"), *UNTIL_RUNNING)
    assert ledger.attempts.recent("sales", 2) == (attempt(3), attempt(2))


def test_a_failure_text_may_hold_what_a_database_refuses(ledger):
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL, failure=Failure("a\x00b\ud800c 'quoted' %s é"))
    assert ledger.attempts.of_run("run-1")[0].failure == "a\N{REPLACEMENT CHARACTER}b?c 'quoted' %s é"


def test_attempts_before_one_are_those_of_its_region_that_had_partitions_of_it(ledger):
    for epoch, share in ((1, None), (2, "0-3"), (3, "4-7"), (4, "2-5"), (5, "0-1")):
        ledger.attempts.create(replace(attempt(epoch), share=share), *UNTIL_RUNNING)
    for other in (attempt(1, interval="other"), attempt(1, region="other")):
        ledger.attempts.create(other, *UNTIL_RUNNING)

    def before(epoch: int, share: str | None) -> list[int]:
        return [found.epoch for found in ledger.attempts.before(replace(attempt(epoch), share=share))]

    assert before(5, "0-1") == [1, 2]
    assert before(4, "2-5") == [1, 2, 3]
    assert before(6, None) == [1, 2, 3, 4, 5]
    assert before(1, None) == []


def test_the_newest_attempt_of_every_region_and_interval_of_a_pipeline(ledger):
    for one in (
        attempt(1),
        attempt(3, run_id="run-0"),
        attempt(2),
        attempt(9, interval="2024-01-03"),
        attempt(4, region="other"),
    ):
        ledger.attempts.create(one, *UNTIL_RUNNING)
    found = [(region.interval, region.region, region.epoch) for region in ledger.attempts.newest_of_regions("sales")]
    assert found == [("2024-01-01", "joined", 3), ("2024-01-01", "other", 4), ("2024-01-03", "joined", 9)]
    assert ledger.attempts.newest_of_regions("unknown") == ()


def test_attempts_of_an_interval_that_failed_by_certain_rules_are_told_by_epoch(ledger):
    def fail(one: Attempt, rule: str | None, end: AttemptEvent = AttemptEvent.FAIL) -> None:
        ledger.attempts.create(one, *UNTIL_RUNNING)
        ledger.attempts.apply(one.attempt_id, end, failure=Failure("why", FailureClass.ENVIRONMENT, rule))

    fail(attempt(4, run_id="run-2", region="other"), "stalled")
    fail(replace(attempt(2), share="0-3"), "disk_full")
    fail(attempt(3), "gate")
    fail(attempt(5), None, AttemptEvent.REPORTED_FINISHED)
    fail(attempt(6, interval="other"), "stalled")
    fail(replace(attempt(7), pipeline="costs"), "stalled")
    ledger.attempts.create(replace(attempt(8), epoch=UNBEGUN), AttemptEvent.SCHEDULE)
    ledger.attempts.apply(attempt(8).attempt_id, AttemptEvent.FAIL, failure=Failure("why", None, "stalled"))
    found = ledger.attempts.failed("sales", "2024-01-01", {"stalled", "disk_full"})
    assert [(attempt.epoch, attempt.region, attempt.failure_rule) for attempt in found] == [
        (2, "joined", "disk_full"),
        (4, "other", "stalled"),
    ]
    assert ledger.attempts.failed("sales", "2024-01-01", {"out_of_memory"}) == ()
