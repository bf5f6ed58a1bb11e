"""A run as if every partition had been computed: something to ask questions about before there is any real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.model.keys.compute_key import digest
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation, StageData, StageFacts, StageOrder, StageSituation
from stagehold.spec.pipeline import Pipeline, Stage

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = "imagined"


def imagined_run(pipeline: Pipeline) -> Situation:
    """All stored partitions are consumable, and what they follow from has not changed since.
    Nothing is read to know this.
    """
    recorded = {
        stage.name: tuple(_record(pipeline, stage, index, "") for index in range(stage.partitions))
        for stage in _stored(pipeline)
    }
    stages = {stage.name: StageSituation(_facts(stage)) for stage in pipeline.stages}
    situation = Situation(pipeline, stages, environment=_NAME, params=_NAME)
    for stage in _stored(pipeline):
        # With all other stages taken as they are, the planner says which key this one's records would have.
        decisions = resume_plan(_with_others_accepted(situation, recorded, stage.name)).of(stage.name)
        recorded[stage.name] = tuple(
            _record(pipeline, stage, decision.partition, str(decision.key)) for decision in decisions
        )
    return situation.changed(lambda name, known: replace(known, data=StageData(recorded.get(name, ()))))


def _with_others_accepted(
    situation: Situation, recorded: Mapping[str, tuple[PartitionRecord, ...]], stage: str
) -> Situation:
    return situation.changed(
        lambda name, known: replace(
            known, data=StageData(recorded.get(name, ())), order=StageOrder(accepted=name != stage)
        )
    )


def _stored(pipeline: Pipeline) -> tuple[Stage, ...]:
    return tuple(stage for stage in pipeline.stages if stage.output.type.stored)


def _facts(stage: Stage) -> StageFacts:
    return StageFacts(
        code=digest((stage.job,)), splits=tuple(map(str, range(stage.partitions))) if stage.source else ()
    )


def _record(pipeline: Pipeline, stage: Stage, partition: int, key: str) -> PartitionRecord:
    return PartitionRecord(
        cell=Cell(pipeline.name, stage.id, _NAME),
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id=_NAME,
        attempt_id=_NAME,
        epoch=1,
        wave=0,
        table=stage.output.table or stage.id,
        version=0,
        files=(),
        rows=0,
        fingerprint="",
        compute_key=key,
        recorded_at=_LONG_AGO,
    )
