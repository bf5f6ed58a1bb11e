from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.plan.resume.situations import DECISIONS

from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.cost import Estimate, estimate, recorded_seconds
from stagehold.plan.resume.decisions import Action, ResumePlan

START = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(stage, partition, seconds):
    facts = {"rows": 1, "fingerprint": "", "compute_key": "", "recorded_at": START, "seconds": seconds}
    return PartitionRecord(
        Cell("sample", stage, "i"), partition, PartitionState.CONSUMABLE, "run", "x", 1, 1, "t", 1, (), **facts
    )


def test_the_newest_time_of_a_partition_counts_and_an_adopted_one_has_none():
    records = [
        recorded("a", 0, 10.0),
        recorded("a", 1, 2.0),
        recorded("b", 0, 1.5),
        recorded("a", 0, 3.0),
        recorded("a", 1, None),
    ]
    assert recorded_seconds(records) == {"a": {0: 3.0, 1: 2.0}, "b": {0: 1.5}}
    assert recorded_seconds([]) == {}


def plan(text):
    """ "stage=RrH": a letter for each partition's action."""
    actions = {"R": Action.RUN, "H": Action.HEAL, "r": Action.REUSE, "d": Action.RELEASE}
    by_stage = {}
    for part in text.split():
        stage, letters = part.split("=")
        by_stage[stage] = tuple(
            DECISIONS[actions[letter]](stage, index, because("why")) for index, letter in enumerate(letters)
        )
    return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage)


ESTIMATES = [
    ("what runs and what need not", "a=RHrd", {"a": {0: 1, 1: 2, 2: 4, 3: 8}}, Estimate(2, 2, 3, 12, ())),
    ("an untimed partition is an average one", "a=Rr", {"a": {0: 3, 7: 5}}, Estimate(1, 1, 3, 4, ())),
    ("an untimed stage is named", "a=R b=r", {"a": {0: 3}}, Estimate(1, 1, 3, 0, ("b",))),
    ("a stage with no times is untimed", "a=R", {"a": {}}, Estimate(1, 0, 0, 0, ("a",))),
]


@pytest.mark.parametrize(
    ("text", "seconds", "expected"), [row[1:] for row in ESTIMATES], ids=[row[0] for row in ESTIMATES]
)
def test_estimate(text, seconds, expected):
    assert estimate(plan(text), seconds) == expected
