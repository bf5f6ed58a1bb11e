"""How two intervals differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.run.clearing.nights import STAGES, Nights

from stagehold.errors import UnknownName
from stagehold.run.intervals.interval_deletion import IntervalDeletion
from stagehold.run.intervals.interval_differences import StageContents, StageDifference, compare_intervals

pytestmark = pytest.mark.slow

DAY, NEXT = "2026-11-20", "2026-11-21"
EMPTY = StageContents(0, 0, 0, 0, 0.0, 0, 0, 0, {})


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path)
    nights.run(DAY)
    return nights


def compare(nights: Nights) -> dict[str, StageDifference]:
    return {interval.stage: interval for interval in compare_intervals(nights.pipeline, DAY, NEXT, nights.ledger)}


def test_equal_data_is_equal_although_it_is_another_intervals(nights):
    nights.run(NEXT)
    assert [(one.equal, one.causes, one.columns) for one in compare(nights).values()] == [(3, (), ())] * 3


def test_a_partition_that_came_out_otherwise_is_told(nights):
    nights.write_source(1, 70)
    nights.run(NEXT)
    assert {stage: one.equal for stage, one in compare(nights).items()} == dict.fromkeys(STAGES, 2)


def test_what_made_it_otherwise_is_told(nights):
    nights.rewrite("edits", "return drafts")
    nights.run(NEXT)
    assert {stage: one.causes for stage, one in compare(nights).items()} == {
        "drafts": (),
        "edits": ("code",),
        "prints": (),
    }


def test_what_was_deleted_has_no_bytes_and_is_not_consumable(nights):
    nights.run(NEXT)
    IntervalDeletion.of(nights.pipeline, NEXT, nights.workplace, "ann").carry_out()
    for one in compare(nights).values():
        assert (one.one.consumable, one.other.consumable, one.other.bytes, one.other.rows) == (3, 0, 0, 3)
        assert one.columns == ()


def test_an_interval_without_records_is_refused_with_those_that_have_some(nights):
    with pytest.raises(UnknownName, match=f"'{NEXT}'. Known: {DAY}"):
        compare(nights)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"a": "int32"}, {"a": "int32"}, ()),
        ({"a": "int32"}, {"a": "int64"}, ("a: int32 -> int64",)),
        ({"a": "int32", "b": "string"}, {"a": "int32"}, ("-b string",)),
        ({"a": "int32"}, {"a": "int32", "c": "double"}, ("+c double",)),
        ({"a": "int32"}, {}, ()),
    ],
)
def test_columns_are_told_by_name_and_type(one, other, told):
    contents = [replace(EMPTY, columns=columns) for columns in (one, other)]
    assert StageDifference("orders", *contents, equal=0, causes=()).columns == told
