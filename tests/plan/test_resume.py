"""The resume plan as a table: what is recorded, what changed, what is decided and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stagehold.model.compute_key import ComputeKey
from stagehold.model.records import Acceptance, Cell, DataFile, PartitionRecord, PartitionState
from stagehold.model.spec import Exchange, Input, OnCodeChange, Output, OutputType, Pipeline, Source, Stage
from stagehold.plan.explanation import explain
from stagehold.plan.reproduction import remark
from stagehold.plan.resume import Action, ResumePlan, Situation, StageFacts, descendants, resume_plan

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def source(name: str, partitions: int = 2) -> Stage:
    return Stage(
        name=name,
        job=f"jobs.x:{name}",
        source=Source(kind="parquet", path="p", splits=partitions),
        partitions=partitions,
        max_parallelism=128,
    )


def stage(name: str, *inputs: Input, partitions: int = 2, output: Output | None = None) -> Stage:
    return Stage(name=name, job=f"jobs.x:{name}", inputs=inputs, partitions=partitions, max_parallelism=128, output=output or Output())


def forward(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.FORWARD)


def gather(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.GATHER)


PUBLISHED = Output(type=OutputType.BLOCKING_PERSISTENT, table="marts.t")
CHAIN = Pipeline(
    name="chain",
    file="chain.yaml",
    stages=(source("raw"), stage("clean", forward("raw")), stage("total", gather("clean"), partitions=1, output=PUBLISHED)),
)
FUSED = Pipeline(
    name="fused",
    file="fused.yaml",
    stages=(source("raw"), stage("mapped", forward("raw"), output=Output(type=OutputType.PIPELINED)), stage("kept", forward("mapped"))),
)

FORK = Pipeline(name="fork", file="fork.yaml", stages=(source("raw"), stage("left", forward("raw")), stage("right", forward("raw"))))


def facts_of(pipeline: Pipeline) -> dict[str, StageFacts]:
    return {
        one.name: StageFacts(
            code=f"code {one.name}", splits=tuple(f"split {number}" for number in range(one.partitions)) if one.source else ()
        )
        for one in pipeline.stages
    }


def fresh(pipeline: Pipeline) -> Situation:
    return Situation(pipeline=pipeline, facts=facts_of(pipeline), recorded={}, gone={}, environment="env", params="params")


def record(pipeline: Pipeline, name: str, partition: int, key: ComputeKey, attempt: str = "a1") -> PartitionRecord:
    return PartitionRecord(
        cell=Cell(pipeline.name, name, "i"),
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id="run-1",
        attempt_id=attempt,
        epoch=1,
        wave=1,
        table="t",
        version=1,
        files=(DataFile("f", 10, 1),),
        rows=1,
        fingerprint=f"data {name} {partition}",
        compute_key=str(key),
        recorded_at=NOW,
    )


def finished(pipeline: Pipeline) -> Situation:
    """A run in which every stored partition was computed, stage after stage, as the executor does it."""
    situation = fresh(pipeline)
    for one in pipeline.stages:
        if not one.output.type.stored:
            continue
        plan = resume_plan(situation)
        made = tuple(record(pipeline, one.name, decision.partition, decision.key) for decision in plan.of(one.name) if decision.key)
        situation = replace(situation, recorded={**situation.recorded, one.name: made})
    return situation


def without(situation: Situation, name: str, *partitions: int) -> Situation:
    kept = tuple(one for one in situation.recorded[name] if one.partition not in partitions)
    return replace(situation, recorded={**situation.recorded, name: kept})


def changed(situation: Situation, name: str, **values: object) -> Situation:
    return replace(situation, facts={**situation.facts, name: replace(situation.facts[name], **values)})


def altered(situation: Situation, name: str, partition: int, **values: object) -> Situation:
    records = tuple(replace(one, **values) if one.partition == partition else one for one in situation.recorded[name])
    return replace(situation, recorded={**situation.recorded, name: records})


def made_by(situation: Situation, name: str, code: str) -> Situation:
    """All of a stage's records as other code would have made them: with equal data."""
    keys = [ComputeKey.parse(one.compute_key) for one in situation.recorded[name]]
    made = tuple(
        replace(one, compute_key=str(replace(key, code=code))) for one, key in zip(situation.recorded[name], keys, strict=True) if key
    )
    return replace(situation, recorded={**situation.recorded, name: made})


def rerun(situation: Situation, name: str) -> Situation:
    """The stage's code changed, and it ran again to equal data."""
    return made_by(changed(situation, name, code="new"), name, "new")


def with_stage(situation: Situation, name: str, **values: object) -> Situation:
    """The same with another setting of one stage."""
    stages = tuple(one.model_copy(update=values) if one.name == name else one for one in situation.pipeline.stages)
    return replace(situation, pipeline=situation.pipeline.model_copy(update={"stages": stages}))


def accepted(situation: Situation, name: str, recorded: str, present: str, who: str = "ann") -> Situation:
    word = Acceptance(situation.pipeline.name, None, name, recorded, present, who, f"{recorded} is as good", NOW)
    return replace(situation, acceptances={**situation.acceptances, name: (*situation.acceptances.get(name, ()), word)})


def words(plan: ResumePlan) -> dict[str, str]:
    """Each stage's actions as one letter per partition: r(euse), R(un), H(eal), B(locked)."""
    letters = {Action.REUSE: "r", Action.RUN: "R", Action.HEAL: "H", Action.BLOCKED: "B"}
    return {name: "".join(letters[decision.action] for decision in decisions) for name, decisions in plan.by_stage.items()}


DONE = finished(CHAIN)
RESTORED = replace(
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
    ("gate of a stage changed: its data is judged anew", changed(DONE, "clean", gate="new"), "rr RR R"),
    ("code that cannot be compared is never reused", changed(DONE, "clean", code="", code_problem="exec at line 3"), "rr RR R"),
    ("the environment changed", replace(DONE, environment="spark 5"), "RR RR R"),
    ("parameters changed", replace(DONE, params="other"), "RR RR R"),
    ("data gone that nobody needs is left alone", replace(DONE, gone={"raw": frozenset({0})}), "rr rr r"),
    ("data gone that a running reader needs is healed", replace(without(DONE, "clean", 0), gone={"raw": frozenset({0, 1})}), "Hr Rr R"),
    ("a published result that is gone is healed for itself", replace(DONE, gone={"total": frozenset({0})}), "rr rr H"),
    (
        "healing climbs as far as data is gone",
        replace(DONE, gone={"raw": frozenset({1}), "clean": frozenset({1}), "total": frozenset({0})}),
        "rH rH H",
    ),
    (
        "a finished sibling of who needs healed data is left alone",
        replace(without(finished(FORK), "left", 1), gone={"raw": frozenset({1})}),
        "rH rR rr",
    ),
    ("a partition that was healed to equal data is the same one", altered(DONE, "raw", 0, attempt_id="a2", epoch=2, wave=7), "rr rr r"),
    ("a partition that was healed to other data is followed", altered(DONE, "raw", 0, fingerprint="other data"), "rr Rr R"),
    (
        "an unchanged partition its gate refused stays blocked, and so do its readers",
        altered(DONE, "clean", 1, state=PartitionState.BLOCKED, reason="no"),
        "rr rB B",
    ),
    (
        "a partition its gate refused stays blocked in a stage that is taken as recorded, too",
        altered(replace(DONE, accepted=frozenset({"clean"})), "clean", 1, state=PartitionState.BLOCKED, reason="no"),
        "rr rB B",
    ),
    ("a released partition runs", altered(DONE, "clean", 1, state=PartitionState.RELEASED), "rr rR R"),
    ("a record in an unknown format does not count", altered(DONE, "clean", 1, compute_key="?"), "rr rR R"),
    ("an input made anew by other code, even to equal data, is followed", rerun(DONE, "raw"), "rr RR R"),
    (
        "restore from a stage: it and its readers run, earlier ones are taken as they are",
        changed(replace(DONE, accepted=frozenset({"raw"}), forced=frozenset({"clean", "total"})), "raw", code="new"),
        "rr RR R",
    ),
    (
        "restore goes on from what was computed for the request, whoever computed it anew since",
        altered(RESTORED, "clean", 0, run_id="another run", attempt_id="of another request"),
        "rr rR R",
    ),
    (
        "restore is over when all of it was computed",
        replace(RESTORED, renewed={"clean": frozenset({0, 1}), "total": frozenset({0})}),
        "rr rr r",
    ),
    (
        "what a restore computed and was changed since runs again like anything else",
        changed(replace(RESTORED, renewed={"clean": frozenset({0, 1}), "total": frozenset({0})}), "total", code="new"),
        "rr rr R",
    ),
    (
        "a stage that is taken as recorded still runs where nothing is recorded",
        replace(without(DONE, "raw", 1), accepted=frozenset({"raw"})),
        "rR rR R",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


FUSED_TABLE = [
    ("nothing recorded", fresh(FUSED), "RR RR RR"),
    ("all recorded: the output that is not stored needs nothing", finished(FUSED), "rr rr rr"),
    ("one kept partition missing: its producer runs with it", without(finished(FUSED), "kept", 1), "rr rR rR"),
    ("code of the stage in between changed: its reader runs", changed(finished(FUSED), "mapped", code="new"), "rr RR RR"),
    ("code in between cannot be compared", changed(finished(FUSED), "mapped", code_problem="exec"), "rr RR RR"),
    (
        "stored input gone: healed only where a reader runs",
        replace(without(finished(FUSED), "kept", 1), gone={"raw": frozenset({0, 1})}),
        "rH rR rR",
    ),
]


@pytest.mark.parametrize(("name", "situation", "expected"), FUSED_TABLE, ids=[row[0] for row in FUSED_TABLE])
def test_decisions_around_an_output_that_is_not_stored(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


KEPT = with_stage(DONE, "clean", on_code_change=OnCodeChange.KEEP)
OTHER_CODE = [
    ("kept although other code made it", changed(KEPT, "clean", code="new"), "rr rr r"),
    ("kept although its code cannot be compared", changed(KEPT, "clean", code="", code_problem="exec"), "rr rr r"),
    ("kept code, other settings", changed(KEPT, "clean", code="new", gate="new"), "rr RR R"),
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
    ("an acceptance does not hold backwards", accepted(changed(DONE, "clean", code="old"), "clean", "old", "code clean"), "rr RR R"),
    (
        "accepted code, other parameters",
        replace(accepted(changed(DONE, "clean", code="new"), "clean", "code clean", "new"), params="p"),
        "RR RR R",
    ),
    (
        "some partitions by accepted code, some by the present one",
        altered(
            accepted(rerun(DONE, "clean"), "clean", "older", "new"), "clean", 1, compute_key=str(DONE.recorded["clean"][1].compute_key)
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
    ("an input made anew to other data is followed", altered(rerun(CUTOFF, "raw"), "raw", 0, fingerprint="other data"), "rr Rr R"),
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


HEALED_DIFFERENT = remark(DONE.recorded["raw"][1], compute_key=DONE.recorded["raw"][1].compute_key, fingerprint="other", healed=True)
HEALING = replace(without(finished(FORK), "left", 1), gone={"raw": frozenset({1})})


def test_what_was_made_from_a_healed_partition_hinges_on_it():
    plan = resume_plan(HEALING)
    assert [decision.hinges_on for decision in plan.decisions] == [None, None, None, None, None, ("raw", 1)]
    assert str(plan.of("right")[1].reason) == (
        "consumable, and nothing it follows from changed; runs again only if raw[1], which is healed, comes out different"
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
    plan = resume_plan(replace(without(finished(deep), "needs", 0), gone={"raw": frozenset({0})}))
    assert " ".join(words(plan).values()) == "Hr rr rr rr r Rr"
    assert {(one.stage, one.partition) for one in plan.decisions if one.hinges_on} == {
        ("flowing", 0),
        ("kept", 0),
        ("beside", 0),
        ("total", 0),
    }
    fused = resume_plan(replace(without(finished(deep), "beside", 0), gone={"raw": frozenset({0})}))
    assert " ".join(words(fused).values()) == "Hr Rr rr Rr r rr"
    assert {one.stage for one in fused.decisions if one.hinges_on} == {"flowing", "kept", "total", "needs"}


def test_what_is_taken_as_recorded_is_healed_when_what_it_was_made_from_came_out_different():
    taken = replace(DONE, accepted=frozenset({"raw", "clean"}))
    other = altered(taken, "raw", 1, fingerprint="other", unexplained=True, reason=HEALED_DIFFERENT)
    assert " ".join(words(resume_plan(other)).values()) == "rr rH R"
    assert str(resume_plan(other).of("clean")[1].reason) == f"raw[1] {HEALED_DIFFERENT}"
    assert " ".join(words(resume_plan(altered(taken, "raw", 1, fingerprint="other"))).values()) == "rr rr r"
    assert " ".join(words(resume_plan(altered(taken, "raw", 1, unexplained=True, reason=HEALED_DIFFERENT))).values()) == "rr rr r"


def test_what_somebody_outside_wants_is_healed_and_what_it_is_made_from_with_it():
    lost = replace(DONE, accepted=frozenset({"total"}), gone={"raw": frozenset({0, 1}), "clean": frozenset({0, 1})})
    assert " ".join(words(resume_plan(lost)).values()) == "rr rr r"
    assert " ".join(words(resume_plan(replace(lost, wanted={"clean": frozenset({1})}))).values()) == "rH rH r"


def test_a_partition_taken_as_recorded_has_the_key_to_heal_it_with():
    plan = resume_plan(replace(HEALING, accepted=frozenset({"raw"})))
    assert [(one.action, one.key is not None) for one in plan.of("raw")] == [(Action.REUSE, True), (Action.HEAL, True)]


REASONS = [
    (fresh(CHAIN), "raw", 0, "never computed for this interval"),
    (DONE, "raw", 0, "consumable, and nothing it follows from changed"),
    (changed(DONE, "clean", code="new"), "clean", 0, "the code of jobs.x:clean changed"),
    (changed(DONE, "raw", splits=("other", "split 1")), "raw", 0, "its source changed"),
    (replace(DONE, params="p", environment="e"), "raw", 0, "the Spark or Python environment changed; parameters changed"),
    (altered(DONE, "raw", 0, fingerprint="other"), "clean", 0, "an input was computed anew"),
    (
        changed(finished(FUSED), "mapped", code="new"),
        "kept",
        0,
        "an input was computed anew, or the code or inputs of mapped changed, whose output is not stored",
    ),
    (
        altered(DONE, "raw", 1, fingerprint="other", unexplained=True, reason=HEALED_DIFFERENT),
        "clean",
        1,
        "raw[1] was healed and came out different (fingerprint other, before data raw 1): not deterministic",
    ),
    (
        altered(DONE, "clean", 1, fingerprint="other", unexplained=True, reason="was healed and came out different"),
        "total",
        0,
        "clean[1] was healed and came out different",
    ),
    (changed(KEPT, "clean", code="new"), "clean", 0, "consumable; made by other code, and kept since the stage says on_code_change: keep"),
    (
        accepted(changed(DONE, "clean", code="new"), "clean", "code clean", "new"),
        "clean",
        0,
        "consumable; made by other code, which ann accepted: code clean is as good",
    ),
    (
        changed(altered(DONE, "raw", 0, fingerprint="other"), "clean", code="new"),
        "clean",
        0,
        "the code of jobs.x:clean changed; an input was computed anew",
    ),
    (altered(DONE, "clean", 1, compute_key="?"), "clean", 1, "it was recorded in a format this version cannot read"),
    (without(DONE, "clean", 1), "total", 0, "reads clean[1], which runs again"),
    (altered(DONE, "clean", 1, state=PartitionState.BLOCKED, reason="revenue < 0"), "clean", 1, "revenue < 0"),
    (altered(DONE, "clean", 1, state=PartitionState.BLOCKED), "total", 0, "waits for clean[1], which its gate blocked"),
    (changed(DONE, "clean", code_problem="exec at line 3"), "clean", 0, "its code cannot be compared: exec at line 3"),
]


@pytest.mark.parametrize(("situation", "name", "partition", "reason"), REASONS)
def test_every_decision_says_why(situation, name, partition, reason):
    assert str(resume_plan(situation).of(name)[partition].reason) == reason


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
    assert str(resume_plan(fresh(FUSED)).tally) == "0 partitions reused, 4 run (2 more computed along, not stored), 0 blocked"


def test_what_was_dealt_by_another_hash_is_made_again_by_readers_that_are_keyed_and_by_no_others(monkeypatch):
    keyed = stage("summed", Input(stage="raw", exchange=Exchange.KEYED, key=("k",)))
    pipeline = Pipeline(name="keyed", file="keyed.yaml", stages=(source("raw"), keyed, stage("copied", forward("raw"))))
    situation = finished(pipeline)
    monkeypatch.setattr("stagehold.plan.judgement.HASH_NAME", "crc32-utf8")
    plan = resume_plan(situation)
    assert {(one.action, str(one.reason)) for one in plan.of("summed")} == {(Action.RUN, "the settings of the stage changed")}
    assert {one.action for name in ("raw", "copied") for one in plan.of(name)} == {Action.REUSE}
