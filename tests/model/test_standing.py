"""What is counted, and out of how many: one table, each row asked for its state and for its text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.standing import Amount, DeclaredStage, IntervalState, PartitionState, Standing, Tally, together

CONSUMABLE, HELD, BLOCKED, RELEASED, DAMAGED = PartitionState
INNER, RESULT = DeclaredStage("inner", 16, result=False), DeclaredStage("result", 16, result=True)
UNCOUNTED = DeclaredStage("result", None, result=True)
ALL = {CONSUMABLE: 16}
COMPLETE, INCOMPLETE, EMPTY = IntervalState


@pytest.mark.parametrize(
    ("inner", "result", "state", "text"),
    [
        pytest.param(ALL, ALL, COMPLETE, "32 of 32 consumable", id="all of it"),
        pytest.param({RELEASED: 16}, ALL, COMPLETE, "32 of 32 consumable or released", id="released is good"),
        pytest.param(
            ALL, {CONSUMABLE: 12}, INCOMPLETE, "28 of 32 consumable, 4 missing", id="half-way in the last stage"
        ),
        pytest.param(ALL, {}, INCOMPLETE, "16 of 32 consumable, 16 missing", id="the last stage never began"),
        pytest.param(
            ALL,
            {CONSUMABLE: 13, BLOCKED: 2, HELD: 1},
            INCOMPLETE,
            "29 of 32 consumable, 2 blocked, 1 held",
            id="its gate says no",
        ),
        pytest.param(
            {RELEASED: 15, DAMAGED: 1}, ALL, INCOMPLETE, "31 of 32 consumable or released, 1 damaged", id="damaged"
        ),
        pytest.param(
            {RELEASED: 16},
            {CONSUMABLE: 15, RELEASED: 1},
            INCOMPLETE,
            "31 of 32 consumable or released, 1 published and released",
            id="what is published must be there",
        ),
        pytest.param(
            {RELEASED: 16},
            {RELEASED: 16},
            EMPTY,
            "16 of 32 consumable or released, 16 published and released",
            id="it was deleted",
        ),
        pytest.param({}, {}, EMPTY, "0 of 32 consumable, 32 missing", id="nothing of it"),
    ],
)
def test_an_interval_is_whole_if_all_that_is_declared_is_there_or_inner_and_released(inner, result, state, text):
    standing = together((Standing.of(INNER, inner), Standing.of(RESULT, result)))
    assert (standing.state, standing.whole, str(standing)) == (state, state is COMPLETE, text)


def test_a_stage_whose_partitions_nobody_has_counted_is_not_whole():
    assert str(Standing.of(UNCOUNTED, {})) == "0 of 1 consumable, 1 missing"
    assert not Standing.of(UNCOUNTED, ALL).whole


def test_of_what_nobody_declares_any_more_only_the_record_is_told():
    standing = Standing.on_record({CONSUMABLE: 13, RELEASED: 3})
    assert (standing.state, standing.whole) == (INCOMPLETE, False)
    assert str(standing) == "13 of 16 on record consumable, 3 released"
    assert not Standing.on_record(ALL).whole
    assert Standing.on_record(ALL).state is INCOMPLETE


@given(st.dictionaries(st.sampled_from(PartitionState), st.integers(0, 9)), st.integers(0, 9), st.booleans())
def test_every_partition_is_counted_once(counts, missing, result):
    standing = Standing.of(DeclaredStage("s", sum(counts.values()) + missing, result=result), counts)
    assert standing.recorded + standing.missing == standing.total
    assert standing.missing == missing
    assert standing.consumable + standing.released == standing.done <= standing.recorded
    if standing.whole:
        assert not missing
        assert not any(counts.get(one) for one in (HELD, BLOCKED, DAMAGED))


def test_every_state_of_a_partition_answers_the_same_five_questions():
    answers = {
        state: (state.readable, state.kept_back, state.has_data, state.keeps_files, state.counts_as_done)
        for state in PartitionState
    }
    assert answers == {
        CONSUMABLE: (True, False, True, True, True),
        HELD: (False, True, True, True, False),
        BLOCKED: (False, True, True, True, False),
        RELEASED: (False, False, False, False, True),
        DAMAGED: (False, False, False, True, False),
    }


def test_a_tally_sums_rows_and_bytes_of_what_can_be_read():
    tally = Tally.of(
        [sized(CONSUMABLE, 1), sized(CONSUMABLE, 2), sized(HELD, 4), sized(BLOCKED, 8), sized(DAMAGED, 16)]
    )
    assert tally.counts == {CONSUMABLE: 2, HELD: 1, BLOCKED: 1, DAMAGED: 1}
    assert tally.readable == Amount(2, 3, 30)
    assert (tally.count(HELD), tally.count(RELEASED)) == (1, 0)
    assert Tally.of(()).readable == Amount()


def sized(state: PartitionState, rows: int) -> Any:
    return SimpleNamespace(state=state, rows=rows, bytes=10 * rows)
