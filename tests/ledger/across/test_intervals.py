"""What many intervals say together: the same of every back end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.samples import ATTEMPT_ENDS, CELL, START, attempt, gate_result, record, run

from stagehold.ledger.attempts import Failure
from stagehold.model.choices import Severity
from stagehold.model.records import AttemptState, Cell, DataFile, FailureClass
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent

NAME = "sales/2024-01-01/joined"
OTHER = Cell("sales", "joined", "2024-01-02")
LOST = Failure("the server is gone", FailureClass.ENVIRONMENT, "spark_gone")


@pytest.fixture
def lease(ledger):
    return ledger.leases.acquire(NAME, "me", 60)


def try_again(ledger, epoch, state, *, share=None, failure=None, **facts):
    made = replace(attempt(epoch, **facts), share=share)
    made = replace(made, attempt_id=f"{made.attempt_id}.{share}")
    ledger.attempts.create(made, *UNTIL_RUNNING)
    if state in ATTEMPT_ENDS:
        ledger.attempts.apply(made.attempt_id, *ATTEMPT_ENDS[state], failure=failure)
    return made


def test_intervals_are_known_by_their_runs_and_by_what_was_taken_over_without_one(ledger, lease):
    assert ledger.intervals.known("sales") == {}
    ledger.runs.create(run("one", interval="2024-01-02"))
    ledger.runs.create(run("two", interval="2024-01-02", minutes=5))
    ledger.runs.create(run("other", pipeline="costs", interval="2024-01-09"))
    cells = [CELL, replace(CELL, interval="2024-01-03"), replace(CELL, stage="orders"), replace(CELL, pipeline="a")]
    ledger.partitions.record([record(number, cell=cell) for cell in cells for number in range(2)], lease)
    assert ledger.intervals.known("sales") == {
        "2024-01-01": None,
        "2024-01-02": START + timedelta(minutes=5),
        "2024-01-03": None,
    }


def test_figures_are_told_by_the_run_that_made_them_with_bytes_and_what_a_gate_said(ledger, lease):
    two_files = (DataFile("a", 1000, 5), DataFile("b", 234, 5))
    ledger.partitions.record([record(0, seconds=1.5), record(1), record(2, files=two_files)], lease)
    blocked = record(3, state=PartitionState.BLOCKED, files=(), judged="suite", refused=("no nulls",))
    ledger.partitions.record([record(1, run_id="run-2", judged="suite", seconds=2.0), blocked], lease)
    found = {(one.state, one.run_id): one for one in ledger.partitions.figures("sales", ["2024-01-01"])}
    assert len(found) == 3
    first = found[PartitionState.CONSUMABLE, "run-1"]
    assert (first.partitions, first.rows, first.bytes, first.seconds) == (2, 20, 2234, 1.5)
    assert (first.judged, first.refused) == (0, 0)
    second = found[PartitionState.CONSUMABLE, "run-2"]
    assert (second.partitions, second.bytes, second.seconds, second.judged) == (1, 1000, 2.0, 1)
    refused = found[PartitionState.BLOCKED, "run-1"]
    assert (refused.bytes, refused.judged, refused.refused) == (0, 1, 1)


def test_of_each_share_the_last_try_counts(ledger):
    for epoch, share, state in (
        (1, "0-7/16", AttemptState.FAILED),
        (2, "8-15/16", AttemptState.FAILED),
        (3, "0-7/16", AttemptState.FINISHED),
    ):
        try_again(ledger, epoch, state, share=share, failure=LOST if state is AttemptState.FAILED else None)
    try_again(ledger, 4, AttemptState.RUNNING, region="orders")
    try_again(ledger, 9, AttemptState.FAILED, run_id="another", failure=LOST)
    found = {(one.region, one.state): one for one in ledger.intervals.last_tries(["run-1"])}
    assert {key: one.tries for key, one in found.items()} == {
        ("joined", AttemptState.FAILED): 1,
        ("joined", AttemptState.FINISHED): 1,
        ("orders", AttemptState.RUNNING): 1,
    }
    failed = found["joined", AttemptState.FAILED]
    assert (failed.cause, failed.failure) == ("environment failure, rule spark_gone", "the server is gone")


def test_tries_that_failed_alike_are_one_and_long_texts_are_cut_off(ledger):
    for number in range(3):
        failure = Failure("x" * 5000, FailureClass.RECOVERABLE, "anything_else")
        try_again(ledger, number + 1, AttemptState.FAILED, share=f"{number}-{number}/3", failure=failure)
    (found,) = ledger.intervals.last_tries(["run-1"])
    assert (found.tries, found.failure) == (3, "x" * 300)


def test_warnings_count_as_the_partition_was_judged_last(ledger):
    warning = [
        replace(gate_result(number, passed=False), severity=Severity.WARNING, recorded_at=START) for number in range(3)
    ]
    later = replace(gate_result(1, passed=True), severity=Severity.WARNING, recorded_at=START + timedelta(minutes=1))
    critical = [gate_result(7, passed=False), gate_result(8, passed=False, cell=OTHER)]
    ledger.gates.record([*warning, replace(warning[0], expectation="another"), *critical])
    assert ledger.intervals.warned("sales", ["2024-01-01", "2024-01-02"]) == {("2024-01-01", "joined"): 3}
    ledger.gates.record([later])
    assert ledger.intervals.warned("sales", ["2024-01-01"]) == {("2024-01-01", "joined"): 2}
    assert ledger.intervals.warned("costs", ["2024-01-01"]) == {}


def test_a_recovery_is_the_tries_of_the_same_partitions_in_one_run(ledger):
    try_again(ledger, 1, AttemptState.FAILED, failure=LOST)
    try_again(ledger, 2, AttemptState.FINISHED)
    try_again(ledger, 3, AttemptState.FINISHED, region="orders")
    try_again(ledger, 4, AttemptState.FINISHED, region="orders")
    try_again(ledger, 5, AttemptState.FAILED, region="lines", failure=LOST)
    try_again(ledger, 6, AttemptState.FAILED, run_id="run-2", interval="2024-01-02", failure=LOST)
    try_again(ledger, 7, AttemptState.RUNNING, run_id="run-2", interval="2024-01-02")
    assert [[one.epoch for one in tries] for tries in ledger.recoveries.newest("sales", 10)] == [[6, 7], [1, 2]]
    assert [[one.epoch for one in tries] for tries in ledger.recoveries.newest("sales", 1)] == [[6, 7]]
    assert ledger.recoveries.newest("costs", 10) == ()


def test_a_try_whose_process_died_is_recovered_from_by_the_next_one(ledger):
    """The next one ends it in the ledger."""
    died = try_again(ledger, 1, AttemptState.RUNNING)
    ledger.attempts.apply(died.attempt_id, AttemptEvent.FAIL, failure=LOST)
    try_again(ledger, 2, AttemptState.FINISHED)
    assert len(ledger.recoveries.newest("sales", 10)) == 1


def test_what_an_attempt_left_behind_is_what_its_run_did_not_compute_again(ledger, lease):
    first, second = "run-1.joined.1", "run-1.joined.2"
    made = [record(number, seconds=2.0) for number in range(4)]
    ledger.partitions.record([*made, record(4, state=PartitionState.BLOCKED)], lease)
    ledger.partitions.record([record(0, attempt_id=second, seconds=1.0), record(5, attempt_id=second)], lease)
    ledger.partitions.record([replace(made[1], state=PartitionState.RELEASED, files=())], lease)
    ledger.partitions.record([record(2, run_id="run-2", attempt_id="run-2.joined.3")], lease)
    left = ledger.recoveries.left_behind(["run-1"])
    assert left == {
        first: (3, 6.0),
        second: (2, 1.0),
    }
