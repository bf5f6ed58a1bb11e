"""The resume plan as a table: what is recorded, what changed and what is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    FORK,
    FUSED,
    altered,
    blocked,
    changed,
    discarding,
    finished,
    forward,
    fresh,
    rerun,
    source,
    stage,
    with_facts,
    without,
    words,
)

from stagehold.model.standing import PartitionState
from stagehold.plan.resume.decisions import Action, RunDecision
from stagehold.plan.resume.plan_summary import explain
from stagehold.plan.resume.planner import descendants, resume_plan
from stagehold.spec.pipeline import Pipeline

RESTORED = with_facts(
    DONE, accepted=frozenset({"raw"}), forced=frozenset({"clean", "total"}), renewed={"clean": frozenset({0})}
)  # half of it was computed for the request
TABLE = [
    ("nothing recorded: everything runs", fresh(CHAIN), "RR RR R"),
    ("everything recorded and unchanged: everything is reused", DONE, "rr rr r"),
    ("one partition missing half-way: it runs and what gathers it", without(DONE, "clean", 1), "rr rR R"),
    ("the last stage missing: only it runs", without(DONE, "total", 0), "rr rr R"),
    ("a source partition missing: its forward reader and the gather run", without(DONE, "raw", 0), "Rr Rr R"),
    ("one source file changed: its split only", changed(DONE, "raw", splits=("other", "split 1")), "Rr Rr R"),
    ("code of a middle stage changed", changed(DONE, "clean", code="new"), "rr RR R"),
    ("gate of a stage changed: its data is judged again", changed(DONE, "clean", gate="new"), "rr JJ r"),
    (
        "what the gate refused is judged again when it changed, and may be read then",
        blocked(changed(DONE, "clean", gate="new"), "clean", 1, judged="old"),
        "rr JJ r",
    ),
    (
        "a gate is taken away: what it refused may pass, what passed stays",
        blocked(altered(DONE, "clean", 0, judged="old"), "clean", 1, judged="old"),
        "rr rJ r",
    ),
    (
        "what is gone cannot be judged, and counts as it passed before",
        with_facts(changed(DONE, "clean", gate="new"), gone={"clean": frozenset({0})}),
        "rr rJ r",
    ),
    (
        "what is gone and needed is healed instead of judged",
        with_facts(without(changed(DONE, "clean", gate="new"), "total", 0), gone={"clean": frozenset({0})}),
        "rr HJ R",
    ),
    (
        "what was refused and is gone is computed",
        with_facts(
            blocked(changed(DONE, "clean", gate="new"), "clean", 0, judged="old"),
            gone={"clean": frozenset({0})},
        ),
        "rr RJ R",
    ),
    (
        "what was released is judged when it is computed",
        altered(changed(DONE, "clean", gate="new"), "clean", 0, state=PartitionState.RELEASED),
        "rr rJ r",
    ),
    ("code and gate changed: judged with what is computed", changed(DONE, "clean", code="new", gate="new"), "rr RR R"),
    (
        "taken as recorded, it is not judged for others",
        with_facts(changed(DONE, "clean", gate="new"), accepted=frozenset({"clean"})),
        "rr rr r",
    ),
    (
        "code that cannot be compared is never reused",
        changed(DONE, "clean", code="", code_problem="exec at line 3"),
        "rr RR R",
    ),
    ("the environment changed", replace(DONE, environment="spark 5"), "RR RR R"),
    ("parameters changed", replace(DONE, params="other"), "RR RR R"),
    ("data gone that nobody needs is left alone", with_facts(DONE, gone={"raw": frozenset({0})}), "rr rr r"),
    (
        "data gone that a running reader needs is healed",
        with_facts(without(DONE, "clean", 0), gone={"raw": frozenset({0, 1})}),
        "Hr Rr R",
    ),
    (
        "a published result that is gone is healed for itself",
        with_facts(DONE, gone={"total": frozenset({0})}),
        "rr rr H",
    ),
    (
        "healing climbs as far as data is gone",
        with_facts(DONE, gone={"raw": frozenset({1}), "clean": frozenset({1}), "total": frozenset({0})}),
        "rH rH H",
    ),
    (
        "a finished sibling of who needs healed data is left alone",
        with_facts(without(finished(FORK), "left", 1), gone={"raw": frozenset({1})}),
        "rH rR rr",
    ),
    (
        "a partition that was healed to equal data is the same one",
        altered(DONE, "raw", 0, attempt_id="a2", epoch=2, wave=7),
        "rr rr r",
    ),
    (
        "a partition that was healed to other data is followed",
        altered(DONE, "raw", 0, fingerprint="other data"),
        "rr Rr R",
    ),
    (
        "an unchanged partition its gate refused stays blocked, and so do its readers",
        blocked(DONE, "clean", 1, reason="no"),
        "rr rB B",
    ),
    (
        "a partition its gate refused stays blocked in a stage that is taken as recorded, too",
        blocked(with_facts(DONE, accepted=frozenset({"clean"})), "clean", 1, reason="no"),
        "rr rB B",
    ),
    ("a released partition is missed by nobody", altered(DONE, "clean", 1, state=PartitionState.RELEASED), "rr rr r"),
    (
        "a released partition is healed for a reader that runs",
        changed(altered(DONE, "clean", 1, state=PartitionState.RELEASED), "total", code="new"),
        "rr rH R",
    ),
    (
        "so it is in a stage that is taken as it is recorded",
        changed(
            altered(with_facts(DONE, accepted=frozenset({"clean"})), "clean", 1, state=PartitionState.RELEASED),
            "total",
            code="new",
        ),
        "rr rH R",
    ),
    (
        "what was released before its code changed runs as anything else",
        changed(altered(DONE, "clean", 1, state=PartitionState.RELEASED), "clean", code="new"),
        "rr RR R",
    ),
    ("a result is needed for itself", altered(DONE, "total", 0, state=PartitionState.RELEASED), "rr rr H"),
    ("a record in an unknown format does not count", altered(DONE, "clean", 1, compute_key="?"), "rr rR R"),
    ("an input made anew by other code, even to equal data, is followed", rerun(DONE, "raw"), "rr RR R"),
    (
        "restore from a stage: it and its readers run, earlier ones are taken as they are",
        changed(with_facts(DONE, accepted=frozenset({"raw"}), forced=frozenset({"clean", "total"})), "raw", code="new"),
        "rr RR R",
    ),
    (
        "restore goes on from what was computed for the request, whoever computed it anew since",
        altered(RESTORED, "clean", 0, run_id="another run", attempt_id="of another request"),
        "rr rR R",
    ),
    (
        "restore is over when all of it was computed",
        with_facts(RESTORED, renewed={"clean": frozenset({0, 1}), "total": frozenset({0})}),
        "rr rr r",
    ),
    (
        "what a restore computed and was changed since runs again like anything else",
        changed(
            with_facts(RESTORED, renewed={"clean": frozenset({0, 1}), "total": frozenset({0})}), "total", code="new"
        ),
        "rr rr R",
    ),
    (
        "a stage that is taken as recorded still runs where nothing is recorded",
        with_facts(without(DONE, "raw", 1), accepted=frozenset({"raw"})),
        "rR rR R",
    ),
]


ANEW = [
    ("all of the run", discarding(DONE, raw={0, 1}, clean={0, 1}, total={0}), "RR RR R", "ra0 ra1 cl0 cl1 to0"),
    ("a part is of an earlier run", discarding(DONE, clean={1}, total={0}), "rr rR R", "cl1 to0"),
    ("what reads it follows", discarding(DONE, raw={1}), "rR rR R", "ra1"),
    ("what is not there yet", discarding(without(DONE, "total", 0), raw={0, 1}, clean={0}), "RR RR R", "ra0 ra1 cl0"),
    (
        "taken as recorded by another region, it is still to be made",
        with_facts(discarding(DONE, raw={0}), accepted=frozenset({"raw", "total"})),
        "Rr Rr r",
        "ra0",
    ),
    (
        "a gate refused it, and judges it again",
        blocked(discarding(DONE, clean={1}), "clean", 1),
        "rr rR R",
        "cl1",
    ),
    (
        "its input is blocked by a gate since an earlier run",
        blocked(discarding(DONE, clean={1}), "raw", 1),
        "rB rB B",
        "",
    ),
    (
        "its data is gone as well",
        with_facts(discarding(DONE, clean={0, 1}, total={0}), gone={"raw": frozenset({0}), "clean": frozenset({1})}),
        "Hr RR R",
        "cl0 cl1 to0",
    ),
]


@pytest.mark.parametrize(("situation", "expected", "anew"), [row[1:] for row in ANEW], ids=[row[0] for row in ANEW])
def test_what_a_run_made_before_it_starts_anew_runs_again_and_says_why(situation, expected, anew):
    plan = resume_plan(situation)
    assert " ".join(words(plan).values()) == expected
    marked = [decision for decision in plan.decisions if isinstance(decision, RunDecision) and decision.anew]
    assert " ".join(f"{decision.stage[:2]}{decision.partition}" for decision in marked) == anew
    assert {str(decision.reason) for decision in marked} <= {"this run starts anew after a failure (failover: full)"}


@pytest.mark.parametrize(("name", "situation", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


FUSED_TABLE = [
    ("nothing recorded", fresh(FUSED), "RR RR RR"),
    ("all recorded: the output that is not stored needs nothing", finished(FUSED), "rr rr rr"),
    ("one kept partition missing: its producer runs with it", without(finished(FUSED), "kept", 1), "rr rR rR"),
    (
        "code of the stage in between changed: its reader runs",
        changed(finished(FUSED), "mapped", code="new"),
        "rr RR RR",
    ),
    ("code in between cannot be compared", changed(finished(FUSED), "mapped", code_problem="exec"), "rr RR RR"),
    (
        "stored input gone: healed only where a reader runs",
        with_facts(without(finished(FUSED), "kept", 1), gone={"raw": frozenset({0, 1})}),
        "rH rR rR",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), FUSED_TABLE, ids=[row[0] for row in FUSED_TABLE])
def test_decisions_around_an_output_that_is_not_stored(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


def test_a_plan_counts_and_names_what_computes():
    plan = resume_plan(without(DONE, "clean", 1))
    assert (plan.count(Action.REUSE), plan.count(Action.RUN)) == (3, 2)
    assert plan.stages_that_compute() == ("clean", "total")


def test_descendants_follow_every_path():
    assert descendants(CHAIN, "raw") == {"raw", "clean", "total"}
    assert descendants(CHAIN, "total") == {"total"}


def test_ten_stages_of_a_thousand_partitions_are_ten_lines():
    stages = [source("s0", partitions=1000)]
    stages += [stage(f"s{index}", forward(f"s{index - 1}"), partitions=1000) for index in range(1, 10)]
    lines = explain(resume_plan(fresh(Pipeline(name="wide", file="wide.yaml", stages=tuple(stages)))))
    assert [line.reason for line in lines] == [
        "never computed for this interval",
        *(f"reads s{index}[0-999], which runs again" for index in range(9)),
    ]


def test_what_is_computed_along_is_counted_apart():
    assert (
        str(resume_plan(fresh(FUSED)).counts) == "0 partitions reused, 4 run (2 more computed along, not stored), "
        "0 blocked"
    )
