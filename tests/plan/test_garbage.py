"""Which recorded files may go, by what became of their partitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import record

from stagehold.model.records import DataFile, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.garbage import Why, garbage, may_have_garbage

NOW = datetime(2026, 11, 20, tzinfo=UTC)
STATES = {
    "c": PartitionState.CONSUMABLE,
    "b": PartitionState.BLOCKED,
    "d": PartitionState.DAMAGED,
    "r": PartitionState.RELEASED,
}
SUPERSEDED, REFUSED, RELEASED = Why.SUPERSEDED, Why.REFUSED, Why.RELEASED


def history(letters: str, partition: int = 0, *, days: int = 1) -> list[PartitionRecord]:
    """Records of one partition, ``days`` apart, the last one now."""
    made: list[PartitionRecord] = []
    for place, letter in enumerate(letters):
        state = STATES[letter]
        files = (DataFile(f"{partition}/{place}", 10, 1),)
        if state is PartitionState.DAMAGED:
            files = made[-1].files
        if state is PartitionState.RELEASED:
            files = ()
        at = NOW - timedelta(days=days * (len(letters) - 1 - place))
        made.append(record(partition, state=state, files=files, recorded_at=at))
    return made


def found(records: list[PartitionRecord], needed: set[str] = frozenset(), **older: int) -> dict[str, Why]:
    present = {file.path: file.bytes for record in records for file in record.files}
    return {one.path: one.why for one in garbage(records, present, needed, NOW - timedelta(**older))}


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("c", {}),
        ("b", {}),  # somebody may look at it
        ("cd", {}),  # likewise
        ("ccc", {"0/0": SUPERSEDED}),  # the second was superseded just now
        ("bcc", {"0/0": REFUSED}),
        ("cdcc", {"0/0": SUPERSEDED}),
        ("cr", {"0/0": RELEASED}),  # whatever its age
        ("cdr", {"0/0": RELEASED}),
        ("crc", {"0/0": RELEASED}),
        ("crcc", {"0/0": RELEASED}),
        ("ccr", {"0/0": SUPERSEDED, "0/1": RELEASED}),
        ("cb", {}),
    ],
)
def test_what_may_go_of_a_partition(letters, expected):
    assert found(history(letters), hours=12) == expected
    assert may_have_garbage(history(letters)) >= bool(expected)


def test_age_counts_from_when_something_was_superseded():
    records = history("cc", days=40)
    assert found(records, days=30) == {}
    assert found(records) == {}
    assert found(records, days=-1) == {"0/0": SUPERSEDED}


def test_what_is_needed_or_not_there_stays_out():
    records = [*history("cr"), *history("cr", 1)]
    assert found(records) == {"0/0": RELEASED, "1/0": RELEASED}
    assert found(records, {"0/0"}) == {"1/0": RELEASED}
    assert garbage(records, {"1/0": 7}, frozenset(), NOW)[0].bytes == 7


def test_partitions_do_not_mix():
    records = sorted([*history("cc"), *history("c", 1)], key=lambda record: record.recorded_at)
    assert found([replace(record) for record in records], days=-1) == {"0/0": SUPERSEDED}
