"""What functions read beside their inputs, as far as it is declared, decides about their stages like other causes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import CHAIN, DONE, FUSED, changed, finished, fresh, with_stage, words

from stagehold.model.keys.compute_key import ComputeKey, DeclaredRead, ReadKind
from stagehold.plan.imagined.code_changes import stage_changes
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.output_settings import OnCodeChange

RATE = DeclaredRead(ReadKind.ENV, "RATE", "7")
SIDE = DeclaredRead(ReadKind.FILE, "side.csv", "a")
LAND = DeclaredRead(ReadKind.TABLE, "marts.land", "id 3")
ALL = (RATE, SIDE, LAND)


def done(stage: str, *reads: DeclaredRead, pipeline: Pipeline = CHAIN) -> Situation:
    """A finished run in which the stage declares these."""
    return finished(pipeline, changed(fresh(pipeline), stage, reads=reads))


def reasons(situation: Situation, stage: str) -> set[str]:
    return {str(decision.reason) for decision in resume_plan(situation).of(stage)}


@pytest.mark.parametrize(
    ("situation", "stage", "reads", "expected", "reason"),
    [
        (done("clean", *ALL), "clean", ALL, "rr rr r", "consumable, and nothing it follows from changed"),
        (done("clean", *ALL), "clean", ALL[::-1], "rr rr r", "consumable, and nothing it follows from changed"),
        (
            done("clean", *ALL),
            "clean",
            (replace(RATE, content="8"), SIDE, LAND),
            "rr RR R",
            "reads: env RATE changed",
        ),
        (
            done("clean", *ALL),
            "clean",
            (RATE, replace(SIDE, content="b"), LAND),
            "rr RR R",
            "reads: file side.csv changed",
        ),
        (
            done("clean", *ALL),
            "clean",
            (RATE, SIDE, replace(LAND, content="id 4")),
            "rr RR R",
            "reads: table marts.land changed",
        ),
        (done("clean"), "clean", (RATE,), "rr RR R", "reads: env RATE is declared now"),
        (done("clean", RATE), "clean", (), "rr RR R", "reads: something is declared no more"),
        (done("total", SIDE), "total", (replace(SIDE, content="b"),), "rr rr R", "reads: file side.csv changed"),
    ],
)
def test_a_changed_read_runs_its_stage_and_what_follows_from_it(situation, stage, reads, expected, reason):
    after = changed(situation, stage, reads=reads)
    assert " ".join(words(resume_plan(after)).values()) == expected
    assert reasons(after, stage) == {reason}


def test_without_declared_reads_keys_are_those_of_before_there_were_any():
    for decision in resume_plan(DONE).decisions:
        assert str(decision.key).count(".") == 4
        assert ComputeKey.parse(str(decision.key)) == decision.key


def test_what_an_unstored_stage_reads_counts_for_its_reader():
    situation = done("mapped", RATE, pipeline=FUSED)
    assert " ".join(words(resume_plan(situation)).values()) == "rr rr rr"
    after = changed(situation, "mapped", reads=(replace(RATE, content="8"),))
    assert " ".join(words(resume_plan(after)).values()) == "rr RR RR"
    assert reasons(after, "kept") == {"an input was computed anew, or the code, inputs or reads of mapped changed"}


def test_changed_reads_are_told_beside_other_changes_and_only_code_is_kept():
    situation = changed(done("clean", RATE), "clean", reads=(replace(RATE, content="8"),), code="new")
    kept = with_stage(situation, "clean", on_code_change=OnCodeChange.KEEP)
    assert " ".join(words(resume_plan(kept)).values()) == "rr RR R"
    (change,) = stage_changes(kept, resume_plan(kept))
    assert change.changed == ("code", "reads")
    assert change.consequence.startswith("computed anew all the same, since reads changed as well")
