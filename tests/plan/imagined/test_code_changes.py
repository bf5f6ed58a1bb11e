"""What other code made: kept, accepted, made again, or spared where content is equal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    accepted,
    altered,
    changed,
    finished,
    forward,
    records_of,
    rerun,
    source,
    stage,
    with_known,
    with_stage,
    without,
    words,
)

from stagehold.model.choices import CodeChoice, CodeHandling
from stagehold.model.standing import PartitionState
from stagehold.plan.imagined.code_changes import stage_changes
from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.judgement import shared_key
from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.pipeline import Exchange, Input, Pipeline
from stagehold.spec.settings.output_settings import OnCodeChange

RECOMPUTE = CodeHandling.RECOMPUTE
KEPT = with_stage(DONE, "clean", on_code_change=OnCodeChange.KEEP)
OTHER_CODE = [
    ("kept although other code made it", changed(KEPT, "clean", code="new"), "rr rr r"),
    ("kept although its code cannot be compared", changed(KEPT, "clean", code="", code_problem="exec"), "rr rr r"),
    (
        "kept code, other settings",
        with_stage(changed(KEPT, "clean", code="new"), "clean", max_parallelism=64),
        "rr RR R",
    ),
    ("kept code, other gate", changed(KEPT, "clean", code="new", gate="new"), "rr JJ r"),
    ("kept, but what is missing runs", without(changed(KEPT, "clean", code="new"), "clean", 1), "rr rR R"),
    (
        "what a gate refused is tried again with new code, kept or not",
        altered(changed(KEPT, "clean", code="new"), "clean", 1, state=PartitionState.BLOCKED),
        "rr rR R",
    ),
    ("accepted", accepted(changed(DONE, "clean", code="new"), "clean", "code clean", "new"), "rr rr r"),
    (
        "accepted for other code than the present one",
        accepted(changed(DONE, "clean", code="newer"), "clean", "code clean", "new"),
        "rr RR R",
    ),
    (
        "accepted step by step",
        accepted(accepted(changed(DONE, "clean", code="newer"), "clean", "code clean", "new"), "clean", "new", "newer"),
        "rr rr r",
    ),
    (
        "an acceptance does not hold backwards",
        accepted(changed(DONE, "clean", code="old"), "clean", "old", "code clean"),
        "rr RR R",
    ),
    (
        "accepted code, other parameters",
        replace(accepted(changed(DONE, "clean", code="new"), "clean", "code clean", "new"), params="p"),
        "RR RR R",
    ),
    (
        "some partitions by accepted code, some by the present one",
        altered(
            accepted(rerun(DONE, "clean"), "clean", "older", "new"),
            "clean",
            1,
            compute_key=str(records_of(DONE, "clean")[1].compute_key),
        ),
        "rr rR R",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), OTHER_CODE, ids=[row[0] for row in OTHER_CODE])
def test_decisions_about_what_other_code_made(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


CUTOFF = finished(CHAIN.model_copy(update={"early_cutoff": True}))
SPARED = [
    ("an input made anew by other code to equal data spares its readers", rerun(CUTOFF, "raw"), "rr rr r"),
    (
        "an input made anew to other data is followed",
        altered(rerun(CUTOFF, "raw"), "raw", 0, fingerprint="other data"),
        "rr Rr R",
    ),
    (
        "a source file was rewritten: its split runs, and who reads it waits for the outcome",
        changed(CUTOFF, "raw", splits=("other", "split 1")),
        "Rr Rr R",
    ),
    (
        "a source file was rewritten with equal content: after its split ran, nobody else does",
        altered(
            changed(CUTOFF, "raw", splits=("other", "split 1")),
            "raw",
            0,
            compute_key=str(resume_plan(changed(CUTOFF, "raw", splits=("other", "split 1"))).of("raw")[0].key),
        ),
        "rr rr r",
    ),
    (
        "what another run of the interval made to equal data spares readers, too",
        altered(rerun(CUTOFF, "raw"), "raw", 0, run_id="run-0"),
        "rr rr r",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), SPARED, ids=[row[0] for row in SPARED])
def test_early_cutoff_stops_the_spread_where_content_is_equal(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


def test_what_was_dealt_by_another_hash_is_made_again_by_readers_that_are_keyed_and_by_no_others():
    keyed = stage("summed", Input(stage="raw", exchange=Exchange.KEYED, key=("k",)))
    pipeline = Pipeline(name="keyed", file="keyed.yaml", stages=(source("raw"), keyed, stage("copied", forward("raw"))))
    situation = finished(pipeline)
    plan = resume_plan(made_with_hash(situation, "crc32-utf8"))
    assert {(decision.action, str(decision.reason)) for decision in plan.of("summed")} == {
        (Action.RUN, "the settings of the stage changed")
    }
    assert {decision.action for name in ("raw", "copied") for decision in plan.of(name)} == {Action.REUSE}


def made_with_hash(situation, name):
    """The situation in which everything was made when keys were dealt by the hash of that name."""
    for made in situation.pipeline.stages:
        settings = shared_key(made, situation, name).settings
        keys = {
            decision.partition: str(replace(decision.key, settings=settings))
            for decision in resume_plan(situation).of(made.name)
        }
        for partition, key in keys.items():
            situation = altered(situation, made.name, partition, compute_key=key)
    return situation


def choosing(situation, name, handling, *made_by, reason=""):
    choice = CodeChoice(name, handling, made_by or (f"code {name}",), "ann", reason)
    known = situation.of(name)
    return with_known(situation, name, replace(known, order=replace(known.order, code_choice=choice)))


NEW = changed(DONE, "clean", code="new")
CHOSEN = [
    ("kept for this run", choosing(NEW, "clean", CodeHandling.KEEP), "rr rr r"),
    ("accepted", choosing(NEW, "clean", CodeHandling.ACCEPT), "rr rr r"),
    ("computed though the stage keeps", choosing(changed(KEPT, "clean", code="new"), "clean", RECOMPUTE), "rr RR R"),
    (
        "computed though somebody accepted",
        choosing(accepted(NEW, "clean", "code clean", "new"), "clean", RECOMPUTE),
        "rr RR R",
    ),
    ("what yet other code made is not meant", choosing(NEW, "clean", CodeHandling.KEEP, "older"), "rr RR R"),
    (
        "only code can be kept",
        choosing(with_stage(NEW, "clean", max_parallelism=64), "clean", CodeHandling.KEEP),
        "rr RR R",
    ),
    (
        "kept though its code cannot be compared",
        choosing(changed(DONE, "clean", code="", code_problem="exec"), "clean", CodeHandling.KEEP),
        "rr rr r",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), CHOSEN, ids=[row[0] for row in CHOSEN])
def test_a_restore_may_decide_otherwise_than_the_stage(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


def test_the_reason_says_who_keeps_it_and_why():
    plan = resume_plan(choosing(NEW, "clean", CodeHandling.KEEP, reason="a log line"))
    assert {str(decision.reason) for decision in plan.of("clean")} == {
        "consumable; made by other code, which ann keeps for this run: a log line"
    }


TOLD = [
    # stage, changed, handling, decided by, partitions of other code, spares, costs
    ("nothing changed", DONE, []),
    ("computed by default", NEW, [("clean", "code", "recompute", "default", 2, 0, 3)]),
    (
        "kept by option",
        choosing(NEW, "clean", CodeHandling.KEEP),
        [("clean", "code", "keep", "option", 2, 3, 0)],
    ),
    (
        "kept by the stage, and its reader is computed",
        changed(changed(KEPT, "clean", code="new"), "total", code="new"),
        [("clean", "code", "keep", "stage", 2, 2, 0), ("total", "code", "recompute", "default", 1, 0, 1)],
    ),
    (
        "accepted before",
        accepted(NEW, "clean", "code clean", "new"),
        [("clean", "code", "accept", "acceptance", 2, 3, 0)],
    ),
    (
        "kept, which is of no use",
        choosing(with_stage(NEW, "clean", max_parallelism=64), "clean", CodeHandling.KEEP),
        [("clean", "code settings", "keep", "option", 2, 0, 0)],
    ),
    (
        "keeping is of no use while its input runs",
        choosing(changed(NEW, "raw", code="new"), "clean", CodeHandling.KEEP),
        [("raw", "code", "recompute", "default", 2, 0, 5), ("clean", "code inputs", "keep", "option", 2, 0, 0)],
    ),
    ("no code, but a source", changed(DONE, "raw", splits=("x", "split 1")), [("raw", "inputs", None, None, 0, 0, 0)]),
]


@pytest.mark.parametrize(("name", "situation", "expected"), TOLD, ids=[row[0] for row in TOLD])
def test_what_changed_what_is_done_about_it_and_what_that_spares_or_costs(name, situation, expected):
    told = stage_changes(situation, resume_plan(situation))
    assert [
        (one.stage, " ".join(one.changed), one.handling, one.decided_by, one.partitions, one.spares, one.costs)
        for one in told
    ] == expected
