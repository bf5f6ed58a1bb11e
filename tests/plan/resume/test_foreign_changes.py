"""What becomes of published partitions that somebody else removed: told, and left to whoever has to decide."""

from __future__ import annotations

import pytest
from tests.plan.resume.situations import (
    PUBLISHED,
    changed,
    finished,
    forward,
    gather,
    source,
    stage,
    with_facts,
    with_stage,
    without,
    words,
)

from stagehold.model.foreign_change import ForeignChange
from stagehold.plan.resume.decisions import ReuseDecision
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.output_settings import OnForeignChange

FAIL, HEAL, KEEP = OnForeignChange.FAIL, OnForeignChange.HEAL, OnForeignChange.KEEP
DELETED = ForeignChange(7, "DELETE", "ann (Apache-Spark/4.2.0 Delta-Lake/4.4.0)")
TOLD = "removed by commit 7 (DELETE) of ann (Apache-Spark/4.2.0 Delta-Lake/4.4.0)"
PIPELINE = Pipeline(
    name="sales",
    file="sales.yaml",
    stages=(
        source("raw"),
        stage("mart", forward("raw"), output=PUBLISHED),
        stage("report", gather("mart"), partitions=1),
    ),
)
DONE = finished(PIPELINE)


def deleted(policy: OnForeignChange, situation: Situation = DONE) -> Situation:
    output = PUBLISHED.model_copy(update={"on_foreign_change": policy})
    return with_facts(with_stage(situation, "mart", output=output), removed={"mart": {1: DELETED}})


CODE_CHANGED = changed(DONE, "mart", code="new")
ASKED_FOR = with_facts(DONE, forced=frozenset({"mart", "report"}), accepted=frozenset({"raw"}))
TABLE = [
    ("by default it is blocked, and so are its readers", FAIL, DONE, "rr rB B"),
    ("healed only where that was asked for", HEAL, DONE, "rr rH r"),
    ("kept where that was asked for", KEEP, DONE, "rr rr r"),
    ("other code is no permission to bring rows back", FAIL, CODE_CHANGED, "rr RB B"),
    ("with other code, kept or healed rows are made anew like all others", KEEP, CODE_CHANGED, "rr RR R"),
    ("the same for healed ones", HEAL, CODE_CHANGED, "rr RR R"),
    ("a restore asks for it", FAIL, ASKED_FOR, "rr RR R"),
    ("a reader's own region is told as well", FAIL, with_facts(DONE, accepted=frozenset({"raw", "mart"})), "rr rB B"),
    (
        "and finds it healed where that was asked for",
        HEAL,
        with_facts(DONE, accepted=frozenset({"raw", "mart"})),
        "rr rH r",
    ),
    ("what was not recorded is nobody's to remove", FAIL, without(DONE, "mart", 1), "rr rR R"),
    ("what else is gone heals as ever", FAIL, with_facts(DONE, gone={"mart": frozenset({0})}), "rr HB B"),
]


@pytest.mark.parametrize(("policy", "situation", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_decisions(policy, situation, expected):
    assert " ".join(words(resume_plan(deleted(policy, situation))).values()) == expected


def test_each_decision_says_which_commit_did_it():
    plans = {policy: resume_plan(deleted(policy)) for policy in OnForeignChange}
    reasons = {policy: str(plan.of("mart")[1].reason) for policy, plan in plans.items()}
    assert reasons[FAIL] == f"{TOLD}; on_foreign_change of its output says whether to heal or to keep that"
    assert reasons[HEAL] == f"{TOLD}, and healed as its output says"
    assert reasons[KEEP] == f"{TOLD}, which is kept as its output says"
    (reader,) = plans[FAIL].of("report")
    assert (str(reader.reason), reader.foreign) == (f"waits for mart[1], which was {TOLD}", DELETED)
    assert isinstance(plans[FAIL].of("mart")[0], ReuseDecision)
