from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import attempt

from stagehold.model.records import AttemptState, FailureClass
from stagehold.plan.shares import Share


def test_an_attempt_comes_back_as_it_was_started(ledger):
    ledger.attempts.start(attempt())
    assert ledger.attempts.of_run("run-1") == (attempt(),)


def test_starting_an_attempt_again_changes_nothing(ledger):
    ledger.attempts.start(attempt())
    ledger.attempts.finish(attempt().attempt_id, AttemptState.FAILED, "killed")
    ledger.attempts.start(attempt())
    assert [found.state for found in ledger.attempts.of_run("run-1")] == [AttemptState.FAILED]


@pytest.mark.parametrize("ending", [AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED])
def test_the_first_end_of_an_attempt_stays(ledger, ending):
    ledger.attempts.start(attempt())
    assert ledger.attempts.finish(attempt().attempt_id, ending, "why") is True
    (ended,) = ledger.attempts.of_run("run-1")
    assert (ended.state, ended.failure, ended.ended_at is None) == (ending, "why", False)
    assert ledger.attempts.finish(attempt().attempt_id, AttemptState.FAILED, "too late") is False
    assert ledger.attempts.of_run("run-1") == (ended,)


def test_a_failure_keeps_its_class_and_the_rule_that_gave_it(ledger):
    ledger.attempts.start(attempt())
    facts = {"failure_class": FailureClass.ENVIRONMENT, "failure_rule": "disk_full"}
    ledger.attempts.finish(attempt().attempt_id, AttemptState.FAILED, "OSError: no space", **facts)
    (ended,) = ledger.attempts.of_run("run-1")
    assert (ended.failure_class, ended.failure_rule) == (FailureClass.ENVIRONMENT, "disk_full")


def test_what_never_began_does_not_end(ledger):
    assert ledger.attempts.finish("unknown", AttemptState.FAILED, None) is False


def test_the_newest_attempt_has_the_highest_epoch_whatever_its_run(ledger):
    for one in (attempt(1), attempt(3, run_id="run-0"), attempt(2), attempt(9, interval="other"), attempt(9, region="other")):
        ledger.attempts.start(one)
    assert ledger.attempts.newest("sales", "2024-01-01", "joined") == (attempt(3, run_id="run-0"),)
    assert ledger.attempts.newest("sales", "2024-01-01", "unknown") == ()


def test_of_shares_cut_differently_the_newest_attempt_of_every_partition_counts(ledger):
    for epoch, share in ((1, None), (2, "0-3"), (3, "4-7"), (4, "2-5")):
        ledger.attempts.start(replace(attempt(epoch), share=share))

    def newest(share: Share) -> list[int]:
        return [found.epoch for found in ledger.attempts.newest("sales", "2024-01-01", "joined", share)]

    assert newest(Share(0, 1)) == [2]
    assert newest(Share(2, 4)) == [4]
    assert newest(Share(0, 7)) == [4, 3, 2]
    assert newest(Share(0, 9)) == [4, 3, 2, 1]


def test_attempts_of_a_run_are_in_the_order_they_began(ledger):
    for epoch in (3, 1, 2):
        ledger.attempts.start(attempt(epoch))
    ledger.attempts.start(attempt(4, run_id="run-2"))
    assert [found.epoch for found in ledger.attempts.of_run("run-1")] == [1, 2, 3]


def test_recent_attempts_of_a_pipeline_are_newest_first(ledger):
    for epoch in (3, 1, 2):
        ledger.attempts.start(attempt(epoch))
    ledger.attempts.start(replace(attempt(4, run_id="run-2"), pipeline="costs"))
    assert ledger.attempts.recent("sales", 2) == (attempt(3), attempt(2))


def test_a_failure_text_may_hold_what_a_database_refuses(ledger):
    ledger.attempts.start(attempt())
    ledger.attempts.finish(attempt().attempt_id, AttemptState.FAILED, "a\x00b\ud800c 'quoted' %s é")
    assert ledger.attempts.of_run("run-1")[0].failure == "a\N{REPLACEMENT CHARACTER}b?c 'quoted' %s é"


def test_attempts_before_one_are_those_of_its_region_that_had_partitions_of_it(ledger):
    for epoch, share in ((1, None), (2, "0-3"), (3, "4-7"), (4, "2-5"), (5, "0-1")):
        ledger.attempts.start(replace(attempt(epoch), share=share))
    for other in (attempt(1, interval="other"), attempt(1, region="other")):
        ledger.attempts.start(other)

    def before(epoch: int, share: str | None) -> list[int]:
        return [found.epoch for found in ledger.attempts.before(replace(attempt(epoch), share=share))]

    assert before(5, "0-1") == [1, 2]
    assert before(4, "2-5") == [1, 2, 3]
    assert before(6, None) == [1, 2, 3, 4, 5]
    assert before(1, None) == []


def test_the_newest_attempt_of_every_region_and_interval_of_a_pipeline(ledger):
    for one in (attempt(1), attempt(3, run_id="run-0"), attempt(2), attempt(9, interval="2024-01-03"), attempt(4, region="other")):
        ledger.attempts.start(one)
    found = [(one.interval, one.region, one.epoch) for one in ledger.attempts.newest_of_regions("sales")]
    assert found == [("2024-01-01", "joined", 3), ("2024-01-01", "other", 4), ("2024-01-03", "joined", 9)]
    assert ledger.attempts.newest_of_regions("unknown") == ()
