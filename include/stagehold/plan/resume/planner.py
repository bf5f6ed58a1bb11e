"""Which partitions are reused and which run again, each with its reason.

Retry, clear, backfill, restore, preview and the executor all read the list made here. The rules are Flink's region
failover, asked as a question about data: a partition runs if what it follows from changed, and then its readers run. A
partition whose data is gone and needed is healed; its readers run again only if it comes out different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagehold.model.foreign_change import ForeignChange
from stagehold.model.keys.compute_key import digest
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.confining import leave_alone
from stagehold.plan.resume.decisions import (
    Action,
    BlockedDecision,
    Decision,
    EndedWaiver,
    HealDecision,
    ResumePlan,
    ReuseDecision,
    RunDecision,
)
from stagehold.plan.resume.judged_together import together
from stagehold.plan.resume.judgement import ask_about, identities, judge, shared_key, take
from stagehold.plan.resume.rescaled_stages import RescaledStage
from stagehold.plan.resume.situation import Situation
from stagehold.plan.resume.upstream import Upstream
from stagehold.plan.resume.waiving import (
    EndedData,
    about_to_be_replaced,
    made_from,
    own_waiver_ended,
    stage_waiver_ended,
    with_consequences,
)
from stagehold.spec.pipeline import Exchange, Pipeline, Stage
from stagehold.spec.settings.output_settings import OnForeignChange

if TYPE_CHECKING:
    from stagehold.spec.pipeline import Stage

LEFT = "left as it is: what the savepoint has published is put back, and what stages keep"

LACKING = "the savepoint does not have it, or its data is gone"


def descendants(pipeline: Pipeline, stage: str) -> frozenset[str]:
    """``stage`` and every stage that reads it, directly or not."""
    found = {stage}
    for candidate in pipeline.stages:
        if any(edge.stage in found for edge in candidate.inputs):
            found.add(candidate.name)
    return frozenset(found)


def resume_plan(situation: Situation) -> ResumePlan:
    """Decide for every partition of the pipeline."""
    drafts = _drafts(situation) if situation.put_back is None else put_back(situation, situation.put_back)
    by_stage = {
        stage: tuple(_told_if_restored(decision, situation) for decision in decisions)
        for stage, decisions in drafts.items()
    }
    unstored = frozenset(stage.name for stage in situation.pipeline.stages if not stage.output.stored)
    return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage, unstored)


def _drafts(situation: Situation) -> dict[str, list[Decision]]:
    """Partitions that run because something changed or is gone, and what follows from that."""
    drafts: dict[str, list[Decision]] = {}
    held_back: dict[str, list[Decision]] = {}
    for stage in situation.pipeline.stages:
        drafted = [_unless_gap(stage, situation, decision) for decision in _draft(stage, situation, drafts)]
        drafted = about_to_be_replaced(stage, drafted, situation)
        drafts[stage.name] = with_consequences(stage, together(stage, drafted, situation), situation)
        if not stage.output.type.stored:
            held_back[stage.name] = drafts[stage.name]
            drafts[stage.name] = [_unless_needed(decision, situation) for decision in drafts[stage.name]]
    if situation.confined:
        held_back = {**leave_alone(situation.confined, drafts), **held_back}
    _release_what_is_needed(situation.pipeline, drafts, held_back)
    while _heal(situation, drafts):
        _release_what_is_needed(situation.pipeline, drafts, held_back)
    _mark_what_hinges_on_heals(situation.pipeline, drafts)
    if any(known.words.waivers for known in situation.stages.values()):
        _mark_what_rests_on_waivers(situation.pipeline, drafts)
    return drafts


def _told_if_restored(decision: Decision, situation: Situation) -> Decision:
    if decision.record is None or decision.partition not in situation.of(decision.stage).data.restored:
        return decision
    return replace(decision, restored=True, reason=decision.reason.and_then("; restored"))


def _draft(stage: Stage, situation: Situation, drafts: Mapping[str, list[Decision]]) -> Iterator[Decision]:
    """The first decisions on a stage: compare keys, and count data that is gone as gone until a reader needs it."""
    if situation.of(stage.name).undecided:
        yield RunDecision(stage.name, 0, because("its number of partitions is decided when its inputs are there"))
        return
    recorded = situation.of(stage.name).data.records if stage.output.stored else ()
    records = {record.partition: record for record in recorded}
    upstreams = [Upstream(edge, drafts[edge.stage], situation.pipeline) for edge in stage.inputs]
    shared, rescaled = shared_key(stage, situation), RescaledStage(stage, situation, upstreams)
    all_ended, before = stage_waiver_ended(stage, recorded, situation), EndedData.of(drafts, situation)
    for partition in range(stage.partitions):
        obstacle = next((found for upstream in upstreams if (found := upstream.obstacle(partition))), None)
        record = records.get(partition)
        inputs = identities(stage, situation, upstreams, partition, record)
        key = None if obstacle else replace(shared, inputs=digest(inputs))
        foreign = _undecided_change(stage, record, situation)
        ended = (
            _ended(stage, partition, record, situation, upstreams, before)
            if not all_ended
            else EndedWaiver((stage.name, partition))
        )
        if foreign is not None:
            drafted: Decision = BlockedDecision(
                stage.name, partition, ask_about(foreign), None, record, foreign=foreign
            )
        elif _starts_anew(stage, partition, situation, obstacle):
            reason = because("this run starts anew after a failure (failover: full)")
            drafted = RunDecision(stage.name, partition, reason, key, record, anew=True)
        elif _is_accepted(stage, situation) and record is not None and record.state.counts_as_done and not ended:
            kind, reason = take(record, key, upstreams)
            drafted = kind(stage.name, partition, reason, key, record)
        elif obstacle is not None:
            drafted = replace(obstacle, stage=stage.name, partition=partition, record=record)
        else:
            assert key is not None
            kind, reason = judge(stage, record, key, situation, upstreams)
            drafted = kind(stage.name, partition, reason, key, record)
            drafted = rescaled.of(drafted) if record is None else drafted
        yield replace(drafted, ended=ended) if ended else drafted


def _ended(
    stage: Stage,
    partition: int,
    record: PartitionRecord | None,
    situation: Situation,
    upstreams: Sequence[Upstream],
    ended: EndedData,
) -> EndedWaiver | None:
    """The data that the partition rests on and that may no longer be read, whatever other inputs were computed anew."""
    if own_waiver_ended(stage, record, situation):
        return EndedWaiver((stage.name, partition))
    place = next((found for upstream in upstreams if (found := upstream.ended(partition))), None)
    if place is not None:
        inputs = digest(identities(stage, situation, upstreams, partition, record))
        presumed = replace(shared_key(stage, situation), inputs=inputs)
        if not stage.output.type.stored:
            return EndedWaiver(place, presumed=presumed)
        if record is not None and made_from(record, presumed):
            return EndedWaiver(place)
    beneath = ended.beneath(record)
    return EndedWaiver(beneath) if beneath else None


def _is_accepted(stage: Stage, situation: Situation) -> bool:
    """Whether the stage's records count as they are. They do not if its output is not stored: its readers' keys have
    what they were made from.
    """
    return situation.of(stage.name).order.accepted and stage.output.type.stored


def _unless_needed(decision: Decision, situation: Situation) -> Decision:
    """The decision on a partition whose output is of a type that is not stored, while no reader runs: nothing is
    computed, in either form of the output.

    A reader runs after an input that runs, and whenever its code cannot be compared.
    """
    waits, unknown = decision.key is None, situation.of(decision.stage).facts.code_problem
    if waits or unknown or not decision.action.computes:
        return decision
    reason = because("not stored, and no reader runs")
    return ReuseDecision(decision.stage, decision.partition, reason, decision.key)


def _starts_anew(stage: Stage, partition: int, situation: Situation, obstacle: Decision | None) -> bool:
    """Whether its record is from before this run failed and started anew. Such a partition waits for its gate all the
    same.
    """
    discarded = partition in situation.of(stage.name).data.discarded
    return discarded and (obstacle is None or obstacle.action is not Action.BLOCKED)


def _undecided_change(stage: Stage, record: PartitionRecord | None, situation: Situation) -> ForeignChange | None:
    """A change of the partition by somebody else that nobody has decided about; a restore is a decision.

    Nothing is computed in its place, whatever changed: that would bring back rows that were removed on purpose.
    """
    if record is None or not record.state.readable or stage.output.on_foreign_change is not OnForeignChange.FAIL:
        return None
    asked_for = situation.of(stage.name).order.forces(record.partition)
    return None if asked_for else situation.of(stage.name).data.removed.get(record.partition)


def _unless_gap(stage: Stage, situation: Situation, decision: Decision) -> Decision:
    """The decision, or a block if the state that the partition begins with is missing: nothing is computed before that
    is there. What is dealt anew has gone on with it already.
    """
    earlier, dealt = situation.of(stage.name).earlier, isinstance(decision, RunDecision) and decision.dealt
    if earlier is None or earlier.gap is None or dealt or not decision.action.computes:
        return decision
    reason = because(f"goes on with what it keeps from one interval to the next, and {earlier.gap}")
    return BlockedDecision(stage.name, decision.partition, reason, None, decision.record, gap=earlier.gap)


def _release_what_is_needed(
    pipeline: Pipeline, drafts: Mapping[str, list[Decision]], held_back: Mapping[str, Sequence[Decision]]
) -> None:
    """Put back the decisions that were held back, exactly where a reader runs. In its stored form an output may be
    there by then.
    """
    for stage in reversed(pipeline.stages):
        needed = _needed_by_readers(pipeline, stage, drafts) if stage.name in held_back else ()
        for partition, decision in enumerate(held_back.get(stage.name, ())):
            if (decision.action.computes or decision.action is Action.JUDGE) and partition in needed:
                drafts[stage.name][partition] = decision


def _heal(situation: Situation, drafts: dict[str, list[Decision]]) -> bool:
    """Heal partitions that are gone and needed: read by something that runs, or wanted for themselves. True if anything
    changed.
    """
    changed = False
    for stage in reversed(situation.pipeline.stages):
        lost = _lost(stage, situation)
        needed = lost and _needed(situation, stage, drafts)
        wanted = situation.of(stage.name).order.wanted
        for partition in lost & set(range(len(drafts[stage.name]))):
            decision = drafts[stage.name][partition]
            if decision.action is Action.REUSE and (partition in needed or partition in wanted):
                change = situation.of(stage.name).data.removed.get(partition)
                reason = because(f"{change}, and healed as its output says" if change else _why_gone(decision.record))
                healed = HealDecision(stage.name, partition, reason, decision.key, decision.record)
                drafts[stage.name][partition] = _unless_gap(stage, situation, healed)
                changed = True
    return changed


def _why_gone(record: PartitionRecord | None) -> str:
    released = record is not None and record.state is PartitionState.RELEASED
    return "its data was released and is needed" if released else "its data is gone from the lake and is needed"


def _lost(stage: Stage, situation: Situation) -> PartitionSet:
    """The partitions whose data cannot be read. A released partition counts as lost from that moment on, though its
    files may be there for a while.
    """
    data = situation.of(stage.name).data
    recorded = data.records if stage.output.stored else ()
    released = PartitionSet(record.partition for record in recorded if record.state is PartitionState.RELEASED)
    heals = stage.output.on_foreign_change is OnForeignChange.HEAL
    return data.gone | released | (data.removed.keys() if heals else NO_PARTITIONS)


def _needed(situation: Situation, stage: Stage, drafts: Mapping[str, list[Decision]]) -> frozenset[int] | range:
    """The partitions that are needed. Results are needed for themselves, unless the run leaves them alone; all others
    only by readers.
    """
    wanted = situation.confined is None or situation.confined.wants(stage.name)
    if situation.pipeline.is_result(stage) and wanted:
        return range(stage.partitions)
    return _needed_by_readers(situation.pipeline, stage, drafts)


def _needed_by_readers(
    pipeline: Pipeline, stage: Stage, drafts: Mapping[str, list[Decision]]
) -> frozenset[int] | range:
    pointwise: set[int] = set()
    for reader in pipeline.readers(stage.name):
        running = [decision.partition for decision in drafts[reader.name] if decision.action.computes]
        if running and reader.input(stage.name).exchange is not Exchange.FORWARD:
            return range(stage.partitions)
        pointwise.update(running)
    return frozenset(pointwise)


def _mark_what_hinges_on_heals(pipeline: Pipeline, drafts: dict[str, list[Decision]]) -> None:
    """Mark reused partitions that were made from something that is healed: equal data leaves them as they are, other
    data does not.
    """
    for stage in pipeline.stages:
        upstreams = [Upstream(edge, drafts[edge.stage], pipeline) for edge in stage.inputs]
        for partition, decision in enumerate(drafts[stage.name]):
            healed = next((place for upstream in upstreams if (place := upstream.healed(partition))), None)
            if healed is not None and decision.action is Action.REUSE:
                reason = decision.reason.and_then(
                    "; runs again only if ", healed, ", which is healed, comes out different"
                )
                drafts[stage.name][partition] = replace(decision, reason=reason, hinges_on=healed)
            elif healed is not None and not stage.output.type.stored:
                drafts[stage.name][partition] = replace(decision, hinges_on=healed)


def _mark_what_rests_on_waivers(pipeline: Pipeline, drafts: dict[str, list[Decision]]) -> None:
    """Have each decision say whether its partition is made from data that its gate refuses."""
    for stage in pipeline.stages:
        upstreams = [Upstream(edge, drafts[edge.stage], pipeline) for edge in stage.inputs]
        for partition, decision in enumerate(drafts[stage.name]):
            waived = next((place for upstream in upstreams if (place := upstream.waived(partition))), None)
            if waived is not None and decision.action is not Action.BLOCKED:
                reason = decision.reason.and_then("; made from ", waived, ", which somebody waived")
                drafts[stage.name][partition] = replace(decision, reason=reason, rests_on=waived)


def put_back(situation: Situation, stages: Collection[str]) -> dict[str, list[Decision]]:
    """What a run does that puts an interval back to a savepoint: nothing is compared, and nothing may be computed.

    ``stages`` are taken as they are recorded; their partitions that cannot be put back would run. All others follow
    from code and sources, which may have changed, and are left as they are.
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
        record.partition: record
        for record in situation.of(stage.name).data.records
        if record.state.readable and record.partition not in situation.of(stage.name).data.gone
    }
    for partition in range(stage.partitions):
        record = there.get(partition)
        if record is None:
            yield RunDecision(stage.name, partition, because(LACKING))
        else:
            reason = because("consumable, and taken as it is recorded")
            yield ReuseDecision(stage.name, partition, reason, record=record)
