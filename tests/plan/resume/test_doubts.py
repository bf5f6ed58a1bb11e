"""What hinges on a healed partition, and what follows when it came out different."""

from __future__ import annotations

from tests.plan.resume.situations import (
    DONE,
    FORK,
    HEALED_DIFFERENT,
    altered,
    finished,
    forward,
    gather,
    source,
    stage,
    with_facts,
    without,
    words,
)

from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.pipeline import Output, OutputType, Pipeline

HEALING = with_facts(without(finished(FORK), "left", 1), gone={"raw": frozenset({1})})


def test_what_was_made_from_a_healed_partition_hinges_on_it():
    plan = resume_plan(HEALING)
    assert [decision.hinges_on for decision in plan.decisions] == [None, None, None, None, None, ("raw", 1)]
    assert str(plan.of("right")[1].reason) == (
        "consumable, and nothing it follows from changed; runs again only if raw[1], which is healed, comes out "
        "different"
    )


def test_a_doubt_goes_through_all_that_was_made_from_it_stored_or_not():
    deep = Pipeline(
        name="deep",
        file="deep.yaml",
        stages=(
            source("raw"),
            stage("flowing", forward("raw"), output=Output(type=OutputType.PIPELINED)),
            stage("kept", forward("flowing")),
            stage("beside", forward("flowing")),
            stage("total", gather("kept"), partitions=1),
            stage("needs", forward("raw")),
        ),
    )
    plan = resume_plan(with_facts(without(finished(deep), "needs", 0), gone={"raw": frozenset({0})}))
    assert " ".join(words(plan).values()) == "Hr rr rr rr r Rr"
    assert {(decision.stage, decision.partition) for decision in plan.decisions if decision.hinges_on} == {
        ("flowing", 0),
        ("kept", 0),
        ("beside", 0),
        ("total", 0),
    }
    fused = resume_plan(with_facts(without(finished(deep), "beside", 0), gone={"raw": frozenset({0})}))
    assert " ".join(words(fused).values()) == "Hr Rr rr Rr r rr"
    assert {decision.stage for decision in fused.decisions if decision.hinges_on} == {
        "flowing",
        "kept",
        "total",
        "needs",
    }


def test_what_is_taken_as_recorded_is_healed_when_what_it_was_made_from_came_out_different():
    taken = with_facts(DONE, accepted=frozenset({"raw", "clean"}))
    other = altered(taken, "raw", 1, fingerprint="other", unexplained=True, reason=HEALED_DIFFERENT)
    assert " ".join(words(resume_plan(other)).values()) == "rr rH R"
    assert str(resume_plan(other).of("clean")[1].reason) == f"raw[1] {HEALED_DIFFERENT}"
    assert " ".join(words(resume_plan(altered(taken, "raw", 1, fingerprint="other"))).values()) == "rr rr r"
    assert (
        " ".join(words(resume_plan(altered(taken, "raw", 1, unexplained=True, reason=HEALED_DIFFERENT))).values())
        == "rr rr r"
    )


def test_what_somebody_outside_wants_is_healed_and_what_it_is_made_from_with_it():
    lost = with_facts(DONE, accepted=frozenset({"total"}), gone={"raw": frozenset({0, 1}), "clean": frozenset({0, 1})})
    assert " ".join(words(resume_plan(lost)).values()) == "rr rr r"
    assert " ".join(words(resume_plan(with_facts(lost, wanted={"clean": frozenset({1})}))).values()) == "rH rH r"


def test_a_partition_taken_as_recorded_has_the_key_to_heal_it_with():
    plan = resume_plan(with_facts(HEALING, accepted=frozenset({"raw"})))
    assert [(decision.action, decision.key is not None) for decision in plan.of("raw")] == [
        (Action.REUSE, True),
        (Action.HEAL, True),
    ]
