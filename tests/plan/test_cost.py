from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagehold.model.records import Attempt, AttemptState, Cell, PartitionRecord, PartitionState
from stagehold.plan.cost import Estimate, estimate, recorded_seconds
from stagehold.plan.resume import Action, Decision, ResumePlan

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def attempt(name, second=0):
    return Attempt(name, "run", "sample", "i", "region", 1, AttemptState.FINISHED, at(second))


def recorded(name, stage, partition, wave, second):
    cell = Cell("sample", stage, "i")
    return PartitionRecord(cell, partition, PartitionState.CONSUMABLE, "run", name, 1, wave, "t", 1, (), 1, "", "", at(second))


def records(text):
    """ "attempt stage partitions wave second", one per comma; partitions are digits."""
    parts = [part.split() for part in text.split(",") if part]
    return [
        recorded(name, stage, int(index), int(wave), float(second)) for name, stage, indices, wave, second in parts for index in indices
    ]


TABLE = [
    ("nothing was recorded", "", {}),
    ("a wave's time is shared by its partitions", "x a 01 0 10", {"a": {0: 5, 1: 5}}),
    ("the next wave begins where the last one ended", "x a 0 0 10, x a 1 1 12", {"a": {0: 10, 1: 2}}),
    ("stages of one region follow each other", "x a 0 0 10, x b 0 0 11", {"a": {0: 10}, "b": {0: 1}}),
    ("another attempt has its own start", "x a 0 0 10, y a 1 0 105", {"a": {0: 10, 1: 5}}),
    ("the newest record of a partition counts", "x a 0 0 10, y a 0 0 103", {"a": {0: 3}}),
    ("records of an unknown attempt tell nothing", "z a 0 0 10", {}),
    ("a clock that is behind takes no time back", "y a 0 0 50", {"a": {0: 0}}),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_recorded_seconds(text, expected):
    assert recorded_seconds([attempt("x"), attempt("y", 100)], records(text)) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 100)), max_size=12, unique_by=lambda each: each[:2]))
def test_all_partitions_together_take_as_long_as_the_attempt(waves):
    ordered = sorted(waves, key=lambda each: each[2])
    found = recorded_seconds(
        [attempt("x")], [recorded("x", stage, index, wave, second) for wave, (stage, index, second) in enumerate(ordered)]
    )
    total = sum(seconds for timed in found.values() for seconds in timed.values())
    assert total == pytest.approx(ordered[-1][2] if ordered else 0)


def plan(text):
    """ "stage=RrH": a letter for each partition's action."""
    actions = {"R": Action.RUN, "H": Action.HEAL, "r": Action.REUSE, "d": Action.RELEASE}
    by_stage = {}
    for part in text.split():
        stage, letters = part.split("=")
        by_stage[stage] = tuple(Decision(stage, index, actions[letter], "why") for index, letter in enumerate(letters))
    return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage)


ESTIMATES = [
    ("what runs and what need not", "a=RHrd", {"a": {0: 1, 1: 2, 2: 4, 3: 8}}, Estimate(2, 2, 3, 12, ())),
    ("an untimed partition is an average one", "a=Rr", {"a": {0: 3, 7: 5}}, Estimate(1, 1, 3, 4, ())),
    ("an untimed stage is named", "a=R b=r", {"a": {0: 3}}, Estimate(1, 1, 3, 0, ("b",))),
    ("a stage with no times is untimed", "a=R", {"a": {}}, Estimate(1, 0, 0, 0, ("a",))),
]


@pytest.mark.parametrize(("text", "seconds", "expected"), [row[1:] for row in ESTIMATES], ids=[row[0] for row in ESTIMATES])
def test_estimate(text, seconds, expected):
    assert estimate(plan(text), seconds) == expected
