"""The resume plan as a table: what is recorded, what changed, what is decided and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stagehold.model.compute_key import ComputeKey
from stagehold.model.records import Cell, DataFile, PartitionRecord, PartitionState
from stagehold.model.spec import Exchange, Input, Output, OutputType, Pipeline, Source, Stage
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
    return Situation(pipeline=pipeline, facts=facts_of(pipeline), recorded={}, gone={}, environment="env", params="params", run_id="run-1")


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


def words(plan: ResumePlan) -> dict[str, str]:
    """Each stage's actions as one letter per partition: r(euse), R(un), H(eal), B(locked)."""
    letters = {Action.REUSE: "r", Action.RUN: "R", Action.HEAL: "H", Action.BLOCKED: "B"}
    return {name: "".join(letters[decision.action] for decision in decisions) for name, decisions in plan.by_stage.items()}


DONE = finished(CHAIN)
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
        "a finished sibling that read healed data runs after it",
        replace(without(finished(FORK), "left", 1), gone={"raw": frozenset({1})}),
        "rH rR rR",
    ),
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
    ("an input computed anew, even to equal data, is followed", altered(DONE, "raw", 0, attempt_id="a2"), "rr Rr R"),
    (
        "restore from a stage: it and its readers run, earlier ones are taken as they are",
        changed(replace(DONE, run_id="run-2", accepted=frozenset({"raw"}), forced=frozenset({"clean", "total"})), "raw", code="new"),
        "rr RR R",
    ),
    (
        "restore goes on from what this run already computed",
        altered(
            replace(DONE, run_id="run-2", accepted=frozenset({"raw"}), forced=frozenset({"clean", "total"})), "clean", 0, run_id="run-2"
        ),
        "rr rR R",
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


def test_early_cutoff_spares_readers_when_the_data_came_out_equal():
    eager_to_spare = CHAIN.model_copy(update={"early_cutoff": True})
    rerun = altered(finished(eager_to_spare), "raw", 0, attempt_id="a2")
    assert words(resume_plan(rerun)) == {"raw": "rr", "clean": "rr", "total": "r"}
    different = altered(rerun, "raw", 0, fingerprint="other data")
    assert words(resume_plan(different)) == {"raw": "rr", "clean": "Rr", "total": "R"}


REASONS = [
    (fresh(CHAIN), "raw", 0, "never computed for this interval"),
    (DONE, "raw", 0, "consumable, and nothing it follows from changed"),
    (changed(DONE, "clean", code="new"), "clean", 0, "the code of jobs.x:clean changed"),
    (changed(DONE, "raw", splits=("other", "split 1")), "raw", 0, "its source files changed"),
    (replace(DONE, params="p", environment="e"), "raw", 0, "the Spark or Python environment changed; parameters changed"),
    (altered(DONE, "raw", 0, attempt_id="a2"), "clean", 0, "an input was computed anew"),
    (without(DONE, "clean", 1), "total", 0, "reads clean[1], which runs again"),
    (altered(DONE, "clean", 1, state=PartitionState.BLOCKED, reason="revenue < 0"), "clean", 1, "revenue < 0"),
    (altered(DONE, "clean", 1, state=PartitionState.BLOCKED), "total", 0, "waits for clean[1], which its gate blocked"),
    (changed(DONE, "clean", code_problem="exec at line 3"), "clean", 0, "its code cannot be compared: exec at line 3"),
]


@pytest.mark.parametrize(("situation", "name", "partition", "reason"), REASONS)
def test_every_decision_says_why(situation, name, partition, reason):
    assert resume_plan(situation).of(name)[partition].reason == reason


def test_a_plan_counts_and_names_what_computes():
    plan = resume_plan(without(DONE, "clean", 1))
    assert (plan.count(Action.REUSE), plan.count(Action.RUN)) == (3, 2)
    assert plan.stages_that_compute() == ("clean", "total")


def test_descendants_follow_every_path():
    assert descendants(CHAIN, "raw") == {"raw", "clean", "total"}
    assert descendants(CHAIN, "total") == {"total"}
