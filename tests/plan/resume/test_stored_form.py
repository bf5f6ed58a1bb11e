"""The stored form of outputs that flow by themselves: one is made when a reader runs and it is not there yet."""

from __future__ import annotations

import pytest
from tests.plan.resume.situations import (
    altered,
    blocked,
    changed,
    discarding,
    fresh,
    record,
    records_of,
    source,
    stage,
    with_facts,
    with_records,
    with_stage,
    without,
    words,
)
from tests.plan.resume.situations import forward as reads

from stagehold.model.standing import PartitionState
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import Fallback

FLOWS = Output(type=OutputType.PIPELINED, falls_back=True)
STORED = FLOWS.model_copy(update={"fallback": Fallback("out_of_memory", 1)})
PIPELINE = Pipeline(
    name="p",
    file="p.yaml",
    stages=(
        source("raw"),
        stage("clean", reads("raw"), output=STORED),
        stage("dated", reads("clean"), output=STORED),
        stage("last", reads("dated")),
        stage("other", reads("dated")),
    ),
)


def recorded(text: str) -> Situation:
    """With what the executor records of "stage 0 1, ..." when it computes all in this form, stage after stage."""
    given = {name: tuple(map(int, some)) for name, *some in map(str.split, text.split(","))}
    nothing = fresh(PIPELINE)
    everything, chosen = nothing, {}
    for declared in PIPELINE.stages:
        plan = resume_plan(everything)
        made = tuple(
            record(PIPELINE, declared.name, each.partition, each.key) for each in plan.of(declared.name) if each.key
        )
        everything = with_records(everything, declared.name, made)
        chosen[declared.name] = tuple(each for each in made if each.partition in given.get(declared.name, ()))
    return with_facts(nothing, records=chosen)


def in_the_other_form(situation: Situation) -> Situation:
    return with_stage(with_stage(situation, "clean", output=FLOWS), "dated", output=FLOWS)


def gone(situation: Situation, **partitions: set[int]) -> Situation:
    return with_facts(situation, gone={name: frozenset(some) for name, some in partitions.items()})


PUBLISHED = recorded("raw 0 1, last 0 1, other 0 1")
ALL = recorded("raw 0 1, clean 0 1, dated 0 1, last 0 1, other 0 1")
HALF = recorded("raw 0 1, clean 1, dated 1, last 0, other 0")
FROM_LAST = {"accepted": frozenset({"raw", "clean", "dated", "other"}), "forced": frozenset({"last"})}
FROM_CLEAN = {"accepted": frozenset({"raw"}), "forced": frozenset({"clean", "dated", "last", "other"})}
OUTSIDE = frozenset({"raw", "clean", "dated", "last", "other"})
TABLE = [
    # raw clean dated last other; of the second and third a "r" without a record needs nothing
    ("nothing recorded", fresh(PIPELINE), "RR RR RR RR RR", "RR RR RR RR RR"),
    ("all is published: nothing is stored for its own sake", PUBLISHED, "rr rr rr rr rr", "rr rr rr rr rr"),
    ("half is published, the other half stored", HALF, "rr rr rr rR rR", "rr rR rR rR rR"),
    ("half is published, and nothing stored", recorded("raw 0 1, last 0, other 0"), "rr rR rR rR rR", "rr rR rR rR rR"),
    ("one reader of two is published", without(PUBLISHED, "other", 1), "rr rR rR rr rR", "rr rR rR rr rR"),
    ("the first of two is stored", recorded("raw 0 1, clean 0 1, last 0, other 0"), "rr rr rR rR rR", "rr rR rR rR rR"),
    ("the second of two is stored", recorded("raw 0 1, dated 0 1"), "rr rr rr RR RR", "rr RR RR RR RR"),
    ("stored data is gone and needed", gone(without(ALL, "last", 1), dated={1}), "rr rr rH rR rr", "rr rR rR rR rr"),
    (
        "gone is also what it is made from",
        gone(without(ALL, "last", 1), raw={1}, clean={1}, dated={1}),
        "rH rH rH rR rr",
        "rH rR rR rR rr",
    ),
    ("stored data is gone and not needed", gone(ALL, clean={0, 1}, dated={1}), "rr rr rr rr rr", "rr rr rr rr rr"),
    ("what was published is gone", gone(PUBLISHED, last={1}), "rr rR rR rH rr", "rr rR rR rH rr"),
    (
        "stored data is damaged and needed",
        altered(without(ALL, "last", 1), "dated", 1, state=PartitionState.DAMAGED),
        "rr rr rH rR rr",
        "rr rR rR rR rr",
    ),
    (
        "stored data is damaged and not needed",
        altered(ALL, "dated", 1, state=PartitionState.DAMAGED),
        "rr rr rr rr rr",
        "rr rr rr rr rr",
    ),
    ("its own code changed", changed(ALL, "dated", code="new"), "rr rr RR RR RR", "rr RR RR RR RR"),
    ("the code of a reader changed", changed(ALL, "last", code="new"), "rr rr rr RR rr", "rr RR RR RR rr"),
    ("its code cannot be compared", changed(ALL, "clean", code_problem="exec"), "rr RR RR RR RR", "rr RR RR RR RR"),
    ("a source file changed", changed(ALL, "raw", splits=("other", "split 1")), "Rr Rr Rr Rr Rr", "Rr Rr Rr Rr Rr"),
    (
        "what it is made from is blocked",
        blocked(HALF, "raw", 1),
        "rB rB rB rB rB",
        "rB rB rB rB rB",
    ),
    ("restore from a reader", with_facts(ALL, **FROM_LAST), "rr rr rr RR rr", "rr RR RR RR rr"),
    ("restore from what is stored", with_facts(ALL, **FROM_CLEAN), "rr RR RR RR RR", "rr RR RR RR RR"),
    (
        "restore from what is stored, half done",
        with_facts(ALL, **FROM_CLEAN, renewed={name: frozenset({0}) for name in ("clean", "dated", "last", "other")}),
        "rr rR rR rR rR",
        "rr rR rR rR rR",
    ),
    (
        "a run that starts anew had stored it",
        discarding(without(ALL, "other", 1), dated={0, 1}, last={1}),
        "rr rr rR rR rR",
        "rr rR rR rR rR",
    ),
    ("another region plans", with_facts(PUBLISHED, accepted=OUTSIDE), "rr rr rr rr rr", "rr rr rr rr rr"),
    (
        "another region needs what is gone",
        with_facts(gone(PUBLISHED, last={1}), accepted=OUTSIDE, wanted={"last": frozenset({1})}),
        "rr rR rR rH rr",
        "rr rR rR rH rr",
    ),
]


@pytest.mark.parametrize(("situation", "stored", "along"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_decisions_in_the_stored_form_and_in_the_other_one(situation, stored, along):
    one, other = resume_plan(situation), resume_plan(in_the_other_form(situation))
    assert " ".join(words(one).values()) == stored
    assert " ".join(words(other).values()) == along
    assert [each.key for each in one.decisions if each.key] == [each.key for each in other.decisions if each.key]
    assert (one.unstored, other.unstored) == (frozenset(), {"clean", "dated"})


def test_what_nobody_needs_has_no_record_and_counts_neither_as_reused_nor_as_missing():
    plan = resume_plan(HALF)
    assert [bool(each.reused) for each in plan.of("dated")] == [False, True]
    assert str(plan.counts) == "6 partitions reused, 2 run, 0 blocked"
    assert str(plan.of("dated")[0].reason) == "not stored, and no reader runs"


def test_what_does_not_fit_any_more_is_known_to_who_makes_it_anew():
    each = resume_plan(changed(HALF, "dated", code="new")).of("dated")[1]
    assert each.record == records_of(HALF, "dated")[0]
    assert str(each.reason) == "the code of jobs.x:dated changed"


def test_a_reader_does_not_follow_how_its_stored_input_came_out():
    """As if it had been computed along; but what follows from a table in front of it does."""
    other = altered(ALL, "dated", 1, fingerprint="other", unexplained=True, reason="came out different")
    assert " ".join(words(resume_plan(other)).values()) == "rr rr rr rr rr"
    healed = resume_plan(gone(without(ALL, "last", 1), raw={1}, dated={1}))
    assert " ".join(words(healed).values()) == "rr rr rH rR rr"
    assert {decision.stage for decision in healed.decisions if decision.hinges_on} == set()
    deeper = resume_plan(gone(without(ALL, "last", 1), raw={1}, clean={1}, dated={1}))
    assert {(decision.stage, decision.hinges_on) for decision in deeper.decisions if decision.hinges_on} == {
        (name, ("raw", 1)) for name in ("clean", "dated", "other")
    }


def test_the_reason_says_which_rule_the_failure_fitted():
    assert str(resume_plan(PUBLISHED).of("clean")[0].reason) == "not stored, and no reader runs"
    assert {str(each.reason) for each in resume_plan(recorded("raw 0 1")).of("clean")} == {
        "stored before its reader runs, since an attempt that computed both at once failed (out_of_memory)"
    }
