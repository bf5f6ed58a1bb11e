from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.ledger.samples import record
from tests.made_records import partition_record
from tests.plan.resume.situations import DECISIONS

from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell
from stagehold.plan.grounds.reasons import Detail, Places, because
from stagehold.plan.resume.decisions import Action, ResumePlan, ReuseDecision, RunDecision
from stagehold.plan.resume.plan_summary import Estimate, estimate, explain, recorded_seconds

START = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(stage, partition, seconds):
    return partition_record(partition, Cell("sample", stage, "i"), seconds=seconds)


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


def test_decisions_of_one_kind_become_one_line():
    run, reuse = because("never computed"), because("consumable")
    decisions = (
        ReuseDecision("a", 0, reuse),
        RunDecision("a", 1, run),
        RunDecision("a", 2, run),
    )
    other = (RunDecision("b", 0, run),)
    plan = ResumePlan(decisions + other, {"a": decisions, "b": other})
    assert [str(line) for line in explain(plan)] == [
        "a: reuse 1 of 3 partitions (0): consumable",
        "a: run 2 of 3 partitions (1-2): never computed",
        "b: run 1 of 1 partitions: never computed",
    ]
    assert [line.stage for line in explain(plan, ["b"])] == ["b"]


def plan_of(*reasons):
    decisions = tuple(RunDecision("b", index, reason) for index, reason in enumerate(reasons))
    return ResumePlan(decisions, {"b": decisions})


@pytest.mark.parametrize(
    ("reasons", "lines"),
    [
        pytest.param(
            [because("reads ", ("a", index), ", which runs again") for index in range(1000)],
            ["b: run 1000 of 1000 partitions: reads a[0-999], which runs again"],
            id="each names its own input",
        ),
        pytest.param(
            [because("reads ", ("a", 0), ", which runs again")] * 2
            + [because("reads ", ("c", 0), ", which runs again")],
            [
                "b: run 2 of 3 partitions (0-1): reads a[0], which runs again",
                "b: run 1 of 3 partitions (2): reads c[0], which runs again",
            ],
            id="inputs of other stages stay apart",
        ),
        pytest.param(
            [because("reads ", Places("a", PartitionSet((0, *range(4, 1000)))), ", which runs again")] * 1000,
            ["b: run 1000 of 1000 partitions: reads a[0, 4-999], which runs again"],
            id="each reads all that runs",
        ),
        pytest.param(
            [
                because("reads ", Places("a", PartitionSet((0, 1))), ", which runs again"),
                because("reads ", ("a", 2), ", which runs again"),
                because("reads ", Places("a", PartitionSet((1, 2))), ", which runs again"),
            ],
            ["b: run 3 of 3 partitions: reads a[0-2], which runs again"],
            id="some of them and one of them are one kind",
        ),
        pytest.param(
            [because("the code changed; ", ("a", index), " ", Detail(f"came out as {index}")) for index in (0, 1, 5)],
            ["b: run 3 of 3 partitions: the code changed; a[0-1, 5] came out as 0 (and 2 more like this)"],
            id="details differ",
        ),
    ],
)
def test_reasons_of_one_kind_become_one_line(reasons, lines):
    assert [str(line) for line in explain(plan_of(*reasons))] == lines


def test_what_is_not_stored_is_counted_apart():
    actions = {"flow": (Action.RUN, Action.REUSE), "kept": (Action.HEAL, Action.REUSE, Action.BLOCKED)}
    by_stage = {
        name: tuple(DECISIONS[one](name, index, because("x"), None, record(index)) for index, one in enumerate(given))
        for name, given in actions.items()
    }
    plan = ResumePlan((*by_stage["flow"], *by_stage["kept"]), by_stage, frozenset({"flow"}))
    assert str(plan.counts) == "1 partitions reused, 1 run (1 more computed along, not stored), 1 blocked"
    assert (
        str(ResumePlan(by_stage["kept"], {"kept": by_stage["kept"]}).counts) == "1 partitions reused, 1 run, 1 blocked"
    )
