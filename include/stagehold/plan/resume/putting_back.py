"""What a run does that puts an interval back to a savepoint: nothing is compared, and nothing may be computed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Decision, ReuseDecision, RunDecision
from stagehold.plan.resume.situation import Situation

if TYPE_CHECKING:
    from stagehold.spec.pipeline import Stage

LEFT = "left as it is: what the savepoint has published is put back, and what stages keep"
LACKING = "the savepoint does not have it, or its data is gone"


def put_back(situation: Situation, stages: Collection[str]) -> dict[str, list[Decision]]:
    """``stages`` as they are recorded; what of them cannot be put back would run. All others follow from code and
    sources, which may be others by now, and are left as they are.
    """
    return {
        stage.name: list(_as_recorded(stage, situation) if stage.name in stages else _left(stage))
        for stage in situation.pipeline.stages
    }


def _left(stage: Stage) -> Iterator[Decision]:
    for partition in range(stage.partitions):
        yield ReuseDecision(stage.name, partition, because(LEFT))


def _as_recorded(stage: Stage, situation: Situation) -> Iterator[Decision]:
    there = {
        one.partition: one
        for one in situation.of(stage.name).data.records
        if one.state.readable and one.partition not in situation.of(stage.name).data.gone
    }
    for partition in range(stage.partitions):
        record = there.get(partition)
        if record is None:
            yield RunDecision(stage.name, partition, because(LACKING))
        else:
            reason = because("consumable, and taken as it is recorded")
            yield ReuseDecision(stage.name, partition, reason, record=record)
