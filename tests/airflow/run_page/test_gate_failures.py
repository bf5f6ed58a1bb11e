"""Which partitions do not meet their gate, in groups, from records made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.ledger.samples import START, gate_result, record, waiver

from stagehold.airflow.run_page.gate_failures import gate_failures, words_told
from stagehold.model.choices import Waiver
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState, RefusalStanding

NULLS, ROWS = "no nulls", "some rows"
BLOCKED, CONSUMABLE = PartitionState.BLOCKED, PartitionState.CONSUMABLE
BOTH = (NULLS, ROWS)


def refused(partition: int, *expectations: str, state: PartitionState = BLOCKED, **facts: Any) -> PartitionRecord:
    version = {} if state is CONSUMABLE else {"version": None}  # what is blocked is in no table
    return record(partition, state=state, refused=expectations, **(version | facts))


def told(records: Sequence[PartitionRecord], words: Sequence[Waiver] = ()) -> list[tuple[object, ...]]:
    failed = [
        gate_result(one.partition, passed=False, expectation=expectation)
        for one in records
        for expectation in one.refused
    ]
    found = gate_failures("joined", "joined", records, failed, words)
    return [
        (one.expectation, one.standing, one.partitions, one.waiver.waived_by if one.waiver else None) for one in found
    ]


@pytest.mark.parametrize(
    ("records", "words", "expected"),
    [
        pytest.param([record(0)], [], [], id="all is well"),
        pytest.param(
            [refused(number, NULLS) for number in (0, 1, 2, 5)],
            [],
            [(NULLS, RefusalStanding.BLOCKED, ((0, 2), (5, 5)), None)],
            id="one line for all that fail alike",
        ),
        pytest.param(
            [refused(0, *BOTH), refused(1, ROWS)],
            [],
            [(NULLS, RefusalStanding.BLOCKED, ((0, 0),), None), (ROWS, RefusalStanding.BLOCKED, ((0, 1),), None)],
            id="one line for each expectation",
        ),
        pytest.param(
            [refused(0, NULLS), refused(1, NULLS)],
            [waiver(1)],
            [(NULLS, RefusalStanding.BLOCKED, ((0, 0),), None), (NULLS, RefusalStanding.TO_PUBLISH, ((1, 1),), "ann")],
            id="what is waived stands apart",
        ),
        pytest.param(
            [refused(0, *BOTH)],
            [waiver(0)],
            [(NULLS, RefusalStanding.WAIVED, ((0, 0),), "ann"), (ROWS, RefusalStanding.BLOCKED, ((0, 0),), None)],
            id="half a waiver publishes nothing",
        ),
        pytest.param(
            [refused(0, *BOTH)],
            [waiver(0), waiver(0, expectation=ROWS, waived_by="bea")],
            [
                (NULLS, RefusalStanding.TO_PUBLISH, ((0, 0),), "ann"),
                (ROWS, RefusalStanding.TO_PUBLISH, ((0, 0),), "bea"),
            ],
            id="two halves do",
        ),
        pytest.param(
            [refused(0, NULLS, fingerprint="anew")],
            [waiver(0)],
            [(NULLS, RefusalStanding.BLOCKED, ((0, 0),), None)],
            id="a word of other data",
        ),
        pytest.param(
            [refused(0, NULLS, state=CONSUMABLE), refused(1, NULLS, state=CONSUMABLE)],
            [waiver(0)],
            [(NULLS, RefusalStanding.PUBLISHED, ((0, 0),), "ann"), (NULLS, RefusalStanding.ENDED, ((1, 1),), None)],
            id="published by a word that holds, and by one that has ended",
        ),
        pytest.param(
            [refused(0, NULLS, version=3), refused(1, NULLS)],
            [],
            [(NULLS, RefusalStanding.OUTSTAYING, ((0, 0),), None), (NULLS, RefusalStanding.BLOCKED, ((1, 1),), None)],
            id="left in its table when its word ended",
        ),
        pytest.param(
            [refused(0, NULLS, state=PartitionState.RELEASED), refused(1, NULLS, state=PartitionState.DAMAGED)],
            [waiver(0)],
            [],
            id="what nobody reads",
        ),
    ],
)
def test_partitions_that_fail_and_stand_alike_are_one_group(records, words, expected):
    assert told(records, words) == expected


def test_a_group_tells_what_was_seen_first_by_which_suite_and_whose_word_it_has():
    (one,) = gate_failures("Joined", "gate", [refused(0, NULLS)], [gate_result(0, passed=False)], [waiver(0)])
    assert (one.stage, one.suite, one.observed, one.count) == ("Joined", "joined", "3 nulls", 1)
    assert one.waiver is not None
    assert (one.waiver.reason, one.waiver.until) == ("known since March", None)


def test_a_gate_failure_may_lack_the_observed_value():
    (one,) = gate_failures("joined", "gate", [refused(0, NULLS)], [], [])
    assert (one.suite, one.observed) == ("gate", "")


def test_if_a_blocked_record_has_no_reason_the_results_have_it():
    (one,) = gate_failures("joined", "gate", [refused(0)], [gate_result(0, passed=False)], [])
    assert (one.expectation, one.standing) == (NULLS, RefusalStanding.BLOCKED)


def test_partitions_that_are_computed_anew_anyway_are_a_group_of_their_own():
    records = [refused(0, NULLS), refused(1, NULLS)]
    found = gate_failures("joined", "joined", records, [], [waiver(1)], outdated={1})
    assert [(one.standing, one.partitions) for one in found] == [
        (RefusalStanding.BLOCKED, ((0, 0),)),
        (RefusalStanding.OUTDATED, ((1, 1),)),
    ]


LATER = START + timedelta(hours=1)
ENDED = waiver(0, until=LATER)
TAKEN_BACK = waiver(0, waived_by="bea", reason="a mistake", recorded_at=LATER, until=LATER)


def test_an_ended_waiver_is_named():
    """Bea's word ended when she said it, so that it takes back Ann's."""
    published = refused(0, NULLS, state=CONSUMABLE)
    found = gate_failures("joined", "joined", [published], [], [], past=[waiver(0), TAKEN_BACK, waiver(1)])
    (one,) = found
    assert (one.standing, one.waiver) == (RefusalStanding.ENDED, None)
    told = [word.waiver for word in one.past]
    assert [(word.waived_by, word.reason, word.until) for word in told] == [
        ("ann", "known since March", None),
        ("bea", "a mistake", LATER),
    ]


def test_a_waiver_of_many_partitions_is_one_and_waivers_of_other_data_are_left_out():
    data = [refused(number, NULLS) for number in range(3)] + [refused(3, ROWS), refused(4, NULLS, fingerprint="anew")]
    held = [waiver(number, recorded_at=LATER) for number in (0, 1)]
    said = [*held, ENDED, waiver(3), waiver(4)]
    words = words_told(data, said, held)
    assert words.keys() == {NULLS}
    assert [(one.partitions, one.count, one.holds, one.waiver.until) for one in words[NULLS]] == [
        (((0, 0),), 1, False, LATER),
        (((0, 1),), 2, True, None),
    ]
