"""What counts although something changed that it was made with, by somebody's word; and what is too old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    FUSED,
    NOW,
    altered,
    blocked,
    changed,
    finished,
    records_of,
    with_known,
    with_stage,
    words,
)

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.choices import Acceptance
from stagehold.model.keys.compute_key import ComputeKey, KeyPart
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.run.planning.keep_wishes import KeepWishes, keeping

OTHERS = {
    # what has changed, by the part of the key that it changes
    "code": changed(DONE, "clean", code="new"),
    "params": replace(DONE, params="other"),
    "environment": replace(DONE, environment="other"),
    "sources": changed(DONE, "raw", splits=("raw-0 anew", "raw-1")),
    "settings": with_stage(DONE, "clean", per_wave=True),
}
WITHOUT = {
    "code": "rr RR R",
    "params": "RR RR R",
    "environment": "RR RR R",
    "sources": "RR RR R",
    "settings": "rr RR R",
}


def decided(situation: Situation) -> str:
    found = words(resume_plan(situation))
    return " ".join(found[stage.name] for stage in situation.pipeline.stages)


def reasons(situation: Situation, stage: str) -> set[str]:
    return {str(decision.reason) for decision in resume_plan(situation).of(stage)}


def keeps(situation: Situation, *parts: str) -> Situation:
    """The pipeline says so of all stages."""
    return replace(situation, pipeline=situation.pipeline.model_copy(update={"keep": tuple(map(KeyPart, parts))}))


@pytest.mark.parametrize("changed_part", OTHERS)
@pytest.mark.parametrize("kept", list(KeyPart))
def test_a_change_of_what_is_kept_leaves_all_as_it_is_and_of_nothing_else(changed_part, kept):
    assert decided(keeps(OTHERS[changed_part], kept)) == ("rr rr r" if changed_part == kept else WITHOUT[changed_part])


def test_who_keeps_it_is_told():
    stage = with_stage(OTHERS["code"], "clean", keep=(KeyPart.CODE,))
    assert reasons(stage, "clean") == {"consumable; made by other code, and kept since the stage says keep: code"}
    pipeline = keeps(OTHERS["environment"], "environment")
    assert reasons(pipeline, "total") == {
        "consumable; made in another environment, and kept since the pipeline says keep: environment"
    }


def test_two_changes_need_two_words():
    both = replace(OTHERS["code"], environment="other")
    assert decided(keeps(both, "code")) == "RR RR R"
    assert decided(keeps(both, "code", "environment")) == "rr rr r"
    told = reasons(keeps(both, "code", "environment"), "clean").pop()
    assert "made by other code, and kept" in told
    assert "made in another environment, and kept" in told


def test_what_a_gate_refuses_is_tried_again_whatever_is_kept():
    refused = blocked(keeps(OTHERS["environment"], "environment"), "clean", 1)
    assert words(resume_plan(refused))["clean"] == "rR"


def test_what_is_computed_along_is_a_part_of_what_its_reader_reads_and_is_not_kept():
    kept = keeps(changed(finished(FUSED), "mapped", code="new"), "code", "sources")
    assert words(resume_plan(kept))["kept"] == "RR"


def test_a_word_on_record_is_about_its_part_alone():
    word = Acceptance("chain", None, "clean", "old", "new", "ann", "the same", NOW, KeyPart.PARAMS)
    found = OTHERS["code"]
    known = found.of("clean")
    said = with_known(found, "clean", replace(known, words=replace(known.words, acceptances=(word,))))
    assert decided(said) == "rr RR R"


def wishes(*texts: str, reason: str = "patch release") -> KeepWishes:
    return KeepWishes.read(texts, CHAIN, "ann", reason)


@pytest.mark.parametrize(("part", "without"), [(part, WITHOUT[part]) for part in KeyPart])
def test_what_a_run_is_asked_to_keep_counts_by_words_for_its_interval(part, without):
    assert decided(OTHERS[part]) == without
    kept, said = keeping(OTHERS[part], wishes(part), "2026-11-20")
    assert decided(kept) == "rr rr r"
    assert {(word.interval, word.part, word.accepted_by, word.reason) for word in said} == {
        ("2026-11-20", part, "ann", "patch release")
    }
    assert any("which ann accepted: patch release" in text for stage in said for text in reasons(kept, stage.stage))
    assert keeping(kept, wishes(part), "2026-11-20")[1] == ()


def test_a_wish_for_one_stage_is_not_one_for_others():
    kept, said = keeping(OTHERS["environment"], wishes("total=environment", "raw=environment,code"), "i")
    assert {word.stage for word in said} == {"raw", "total"}
    assert decided(kept) == "rr RR R"


@pytest.mark.parametrize(
    ("texts", "reason", "error", "said"),
    [
        (("settings",), "x", InvalidArgument, "not settings, which say how rows are cut"),
        (("environments",), "x", InvalidArgument, "code, params, environment, sources"),
        (("clean=",), "x", InvalidArgument, "STAGE=PART"),
        (("cleen=code",), "x", UnknownName, "cleen"),
        (("code",), "", InvalidArgument, "--reason"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_what_can(texts, reason, error, said):
    with pytest.raises(error, match=said):
        wishes(*texts, reason=reason)


def aged(situation: Situation, **days: int) -> Situation:
    """Each stage may be so old, while all of it was made at once and three days have gone by."""
    for name, most in days.items():
        situation = with_stage(situation, name, max_age=timedelta(days=most))
    return replace(situation, now=records_of(situation, "raw")[0].recorded_at + timedelta(days=3))


@pytest.mark.parametrize(
    ("days", "expected"),
    [({}, "rr rr r"), ({"clean": 3}, "rr rr r"), ({"clean": 2}, "rr RR R"), ({"total": 1}, "rr rr R")],
)
def test_what_is_older_than_it_may_be_runs_again_with_what_reads_it(days, expected):
    assert decided(aged(DONE, **days)) == expected


def test_a_source_may_say_how_old_it_is_and_the_shorter_age_counts():
    raw = CHAIN.stage("raw")
    with_age = with_stage(DONE, "raw", source=raw.source.model_copy(update={"max_age": timedelta(hours=30)}))
    assert with_age.pipeline.stage("raw").oldest == timedelta(hours=30)
    assert decided(aged(with_age, raw=4)) == "RR RR R"
    assert "older than max_age: 30h (made 2026-11-20 00:00 UTC)" in reasons(aged(with_age), "raw")


def test_a_partition_that_was_made_anew_is_not_old():
    later = records_of(DONE, "clean")[0].recorded_at + timedelta(days=2)
    fresh = altered(aged(DONE, clean=2), "clean", 1, recorded_at=later)
    assert words(resume_plan(fresh))["clean"] == "Rr"
    assert ComputeKey.parse(records_of(fresh, "clean")[1].compute_key)
