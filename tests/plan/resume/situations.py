"""Pipelines, and what is recorded of them, for the tests of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell, DataFile, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import remark
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation, StageData, StageFacts, StageOrder, StageSituation, StageWords
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


PARTS = {"data": StageData(), "order": StageOrder(), "words": StageWords()}


def facts_of(pipeline: Pipeline) -> dict[str, StageFacts]:
    return {
        stage.name: StageFacts(
            code=f"code {stage.name}",
            splits=tuple(f"split {number}" for number in range(stage.partitions)) if stage.source else (),
        )
        for stage in pipeline.stages
    }


def fresh(pipeline: Pipeline) -> Situation:
    stages = {name: StageSituation(facts) for name, facts in facts_of(pipeline).items()}
    return Situation(pipeline=pipeline, stages=stages, environment="env", params="params")


def with_facts(situation: Situation, **facts: Any) -> Situation:
    """The same with other facts, each for all stages: of a mapping a stage has its own or what is the default, of a set
    of stages it is in it or not.
    """
    own = {name: value for name, value in facts.items() if hasattr(situation, name)}
    situation = replace(situation, **own)
    for name in facts.keys() - own.keys():
        values = facts[name]
        situation = situation.changed(lambda stage, known, name=name, values=values: _told(stage, known, name, values))
    return situation


def _told(stage: str, known: StageSituation, name: str, values: Any) -> StageSituation:
    part = next((part for part, default in PARTS.items() if hasattr(default, name)), None)
    default = getattr(PARTS[part] if part else known, name, None)
    value = values.get(stage, default if part else None) if isinstance(values, Mapping) else stage in values
    value = PartitionSet(value) if isinstance(value, Set) else value
    own = replace(getattr(known, part), **{name: value}) if part else value
    return replace(known, **{part or name: own})


def records_of(situation: Situation, name: str) -> tuple[PartitionRecord, ...]:
    return situation.of(name).data.records


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
    for stage in pipeline.stages:
        if not stage.output.type.stored:
            continue
        plan = resume_plan(situation)
        made = tuple(
            record(pipeline, stage.name, decision.partition, decision.key)
            for decision in plan.of(stage.name)
            if decision.key
        )
        situation = with_records(situation, stage.name, made)
    return situation


def with_records(situation: Situation, name: str, records: Iterable[PartitionRecord]) -> Situation:
    known = situation.of(name)
    return with_known(situation, name, replace(known, data=replace(known.data, records=tuple(records))))


def with_known(situation: Situation, name: str, known: StageSituation) -> Situation:
    return replace(situation, stages={**situation.stages, name: known})


def without(situation: Situation, name: str, *partitions: int) -> Situation:
    return with_records(
        situation, name, (record for record in records_of(situation, name) if record.partition not in partitions)
    )


def changed(situation: Situation, name: str, **values: object) -> Situation:
    known = situation.of(name)
    return with_known(situation, name, replace(known, facts=replace(known.facts, **values)))


def altered(situation: Situation, name: str, partition: int, **values: object) -> Situation:
    records = records_of(situation, name)
    return with_records(
        situation, name, (replace(record, **values) if record.partition == partition else record for record in records)
    )


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
            expectation=expectation,
            fingerprint=fingerprint or f"data {name} {partition}",
            waived_by="ann",
            reason="known",
            recorded_at=NOW,
        )
        for expectation in expectations or ("revenue > 0",)
    )
    known = situation.of(name)
    said = replace(known.words, waivers=(*known.words.waivers, *words))
    return with_known(situation, name, replace(known, words=said))


def word_ended(situation: Situation, name: str, partition: int, *expectations: str, fingerprint: str = "") -> Situation:
    """Somebody had waived that, and does so no more."""
    known = situation.of(name)
    said = (
        waived(with_facts(situation, waivers={}), name, partition, *expectations, fingerprint=fingerprint)
        .of(name)
        .words
    )
    ended = tuple(replace(waiver, until=NOW) for waiver in said.waivers)
    words = replace(known.words, ended_waivers=(*known.words.ended_waivers, *ended))
    return with_known(situation, name, replace(known, words=words))


def made_by(situation: Situation, name: str, code: str) -> Situation:
    """All of a stage's records as other code would have made them: with equal data."""
    keys = [ComputeKey.parse(record.compute_key) for record in records_of(situation, name)]
    made = tuple(
        replace(one, compute_key=str(replace(key, code=code)))
        for one, key in zip(records_of(situation, name), keys, strict=True)
        if key
    )
    return with_records(situation, name, made)


def rerun(situation: Situation, name: str) -> Situation:
    """The stage's code changed, and it ran again to equal data."""
    return made_by(changed(situation, name, code="new"), name, "new")


def discarding(situation: Situation, **partitions: set[int]) -> Situation:
    return with_facts(situation, discarded=partitions)


def with_stage(situation: Situation, name: str, **values: object) -> Situation:
    """The same with another setting of one stage."""
    stages = tuple(
        stage.model_copy(update=values) if stage.name == name else stage for stage in situation.pipeline.stages
    )
    return replace(situation, pipeline=situation.pipeline.model_copy(update={"stages": stages}))


def accepted(situation: Situation, name: str, recorded: str, present: str, who: str = "ann") -> Situation:
    word = Acceptance(situation.pipeline.name, None, name, recorded, present, who, f"{recorded} is as good", NOW)
    known = situation.of(name)
    said = replace(known.words, acceptances=(*known.words.acceptances, word))
    return with_known(situation, name, replace(known, words=said))


DECISIONS = {decision.action: decision for decision in Decision.__subclasses__()}  # by action


def words(plan: ResumePlan) -> dict[str, str]:
    """Each stage's actions as one letter per partition: r(euse), R(un), H(eal), B(locked)."""
    letters = {Action.REUSE: "r", Action.RUN: "R", Action.HEAL: "H", Action.BLOCKED: "B", Action.JUDGE: "J"}
    return {
        name: "".join(letters[decision.action] for decision in decisions) for name, decisions in plan.by_stage.items()
    }


DONE = finished(CHAIN)
HEALED_DIFFERENT = remark(
    records_of(DONE, "raw")[1], compute_key=records_of(DONE, "raw")[1].compute_key, fingerprint="other", healed=True
)
