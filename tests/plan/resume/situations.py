"""Pipelines, and what is recorded of them, for the tests of the planner."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import Acceptance, Cell, DataFile, PartitionRecord, Waiver
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.reproduction import remark
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan, Situation, StageFacts
from stagehold.plan.resume.planner import resume_plan
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.source import Source

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
    return Stage(
        name=name,
        job=f"jobs.x:{name}",
        inputs=inputs,
        partitions=partitions,
        max_parallelism=128,
        output=output or Output(),
    )


def forward(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.FORWARD)


def gather(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.GATHER)


PUBLISHED = Output(type=OutputType.BLOCKING_PERSISTENT, table="marts.t")
CHAIN = Pipeline(
    name="chain",
    file="chain.yaml",
    stages=(
        source("raw"),
        stage("clean", forward("raw")),
        stage("total", gather("clean"), partitions=1, output=PUBLISHED),
    ),
)
FUSED = Pipeline(
    name="fused",
    file="fused.yaml",
    stages=(
        source("raw"),
        stage("mapped", forward("raw"), output=Output(type=OutputType.PIPELINED)),
        stage("kept", forward("mapped")),
    ),
)

FORK = Pipeline(
    name="fork", file="fork.yaml", stages=(source("raw"), stage("left", forward("raw")), stage("right", forward("raw")))
)


def facts_of(pipeline: Pipeline) -> dict[str, StageFacts]:
    return {
        one.name: StageFacts(
            code=f"code {one.name}",
            splits=tuple(f"split {number}" for number in range(one.partitions)) if one.source else (),
        )
        for one in pipeline.stages
    }


def fresh(pipeline: Pipeline) -> Situation:
    return Situation(
        pipeline=pipeline, facts=facts_of(pipeline), recorded={}, gone={}, environment="env", params="params"
    )


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


def finished(pipeline: Pipeline, before: Situation | None = None) -> Situation:
    """A run in which every stored partition was computed, stage after stage, as the executor does it."""
    situation = before or fresh(pipeline)
    for one in pipeline.stages:
        if not one.output.type.stored:
            continue
        plan = resume_plan(situation)
        made = tuple(
            record(pipeline, one.name, decision.partition, decision.key)
            for decision in plan.of(one.name)
            if decision.key
        )
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


def blocked(situation: Situation, name: str, partition: int, **values: object) -> Situation:
    return altered(
        situation, name, partition, **{"state": PartitionState.BLOCKED, "refused": ("revenue > 0",), **values}
    )


def waived(situation: Situation, name: str, partition: int, *expectations: str, fingerprint: str = "") -> Situation:
    """By ann, of the data that is recorded."""
    words = tuple(
        Waiver(
            pipeline=situation.pipeline.name,
            interval="i",
            stage=name,
            partition=partition,
            expectation=one,
            fingerprint=fingerprint or f"data {name} {partition}",
            waived_by="ann",
            reason="known",
            recorded_at=NOW,
        )
        for one in expectations or ("revenue > 0",)
    )
    return replace(situation, waivers={**situation.waivers, name: (*situation.waivers.get(name, ()), *words)})


def word_ended(situation: Situation, name: str, partition: int, *expectations: str, fingerprint: str = "") -> Situation:
    """Somebody had waived that, and does so no more."""
    before = replace(situation, waivers={})
    said = waived(before, name, partition, *expectations, fingerprint=fingerprint).waivers[name]
    ended = tuple(replace(one, until=NOW) for one in said)
    every = {**situation.ended_waivers, name: (*situation.ended_waivers.get(name, ()), *ended)}
    return replace(situation, ended_waivers=every)


def made_by(situation: Situation, name: str, code: str) -> Situation:
    """All of a stage's records as other code would have made them: with equal data."""
    keys = [ComputeKey.parse(one.compute_key) for one in situation.recorded[name]]
    made = tuple(
        replace(one, compute_key=str(replace(key, code=code)))
        for one, key in zip(situation.recorded[name], keys, strict=True)
        if key
    )
    return replace(situation, recorded={**situation.recorded, name: made})


def rerun(situation: Situation, name: str) -> Situation:
    """The stage's code changed, and it ran again to equal data."""
    return made_by(changed(situation, name, code="new"), name, "new")


def discarding(situation: Situation, **partitions: set[int]) -> Situation:
    return replace(situation, discarded={name: frozenset(some) for name, some in partitions.items()})


def with_stage(situation: Situation, name: str, **values: object) -> Situation:
    """The same with another setting of one stage."""
    stages = tuple(one.model_copy(update=values) if one.name == name else one for one in situation.pipeline.stages)
    return replace(situation, pipeline=situation.pipeline.model_copy(update={"stages": stages}))


def accepted(situation: Situation, name: str, recorded: str, present: str, who: str = "ann") -> Situation:
    word = Acceptance(situation.pipeline.name, None, name, recorded, present, who, f"{recorded} is as good", NOW)
    return replace(situation, acceptances={**situation.acceptances, name: (*situation.acceptances.get(name, ()), word)})


DECISIONS = {one.action: one for one in Decision.__subclasses__()}  # by action


def words(plan: ResumePlan) -> dict[str, str]:
    """Each stage's actions as one letter per partition: r(euse), R(un), H(eal), B(locked)."""
    letters = {Action.REUSE: "r", Action.RUN: "R", Action.HEAL: "H", Action.BLOCKED: "B", Action.JUDGE: "J"}
    return {
        name: "".join(letters[decision.action] for decision in decisions) for name, decisions in plan.by_stage.items()
    }


DONE = finished(CHAIN)
HEALED_DIFFERENT = remark(
    DONE.recorded["raw"][1], compute_key=DONE.recorded["raw"][1].compute_key, fingerprint="other", healed=True
)
