"""Which lost partitions of other regions an attempt has to heal before it can compute its own.

Partitions that a run made before it started anew count as lost, too. The resume plan already says what is lost and
needed, and includes what follows: a lost partition's inputs are healed too if they are lost as well. This module puts
the healing into an order in which one region after the other can do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stagehold.model.partition_set import Share
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan, RunDecision
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Exchange, Pipeline

Partitions = Mapping[str, frozenset[int]]  # by stage


def healings(plan: ResumePlan, regions: Sequence[Region], region: Region) -> tuple[tuple[Region, Partitions], ...]:
    """What to compute again in regions that ``region`` follows from, in an order in which each region finds all that it
    reads, either there or healed before.

    Lost data of other regions is left to the attempts that read it.

    :param regions: all regions of the pipeline in topological order.
    """
    upstream = _followed_by(region, regions)
    found = ((other, _lost_in(other, plan)) for other in regions if other.name in upstream)
    return tuple((other, partitions) for other, partitions in found if partitions)


def missing_inputs(
    plan: ResumePlan, pipeline: Pipeline, region: Region, share: Share | None = None
) -> Mapping[str, tuple[int, ...]]:
    """Partitions that a share of ``region`` has to read, by stage, which were never consumable, so that nothing can be
    healed. Partitions that may be published again once those can be read wait for them as well.
    """
    decisions = [decision for stage in region.stages for decision in plan.of(stage)]
    if not any(
        decision.action.computes or (decision.action is Action.JUDGE and _waits(decision)) for decision in decisions
    ):
        return {}
    read = partitions_read(plan, pipeline, region, share)
    missing = {
        stage: _partitions(
            decision for decision in decisions if decision.action.computes or decision.action is Action.JUDGE
        )
        for stage, decisions in read.items()
    }
    return {stage: partitions for stage, partitions in missing.items() if partitions}


def partitions_read(
    plan: ResumePlan, pipeline: Pipeline, region: Region, share: Share | None
) -> Mapping[str, tuple[Decision, ...]]:
    """The partitions of other regions that a share of ``region`` reads, by stage: all of a stage or, by forward inputs,
    only its own partitions.
    """
    edges = [
        edge for stage in region.stages for edge in pipeline.stage(stage).inputs if edge.stage not in region.stages
    ]
    whole = {edge.stage for edge in edges if share is None or edge.exchange is not Exchange.FORWARD}
    return {
        stage: tuple(
            decision for decision in plan.of(stage) if share is None or stage in whole or decision.partition in share
        )
        for stage in dict.fromkeys(edge.stage for edge in edges)
    }


def lost_data(plan: ResumePlan) -> tuple[Decision, ...]:
    """Partitions that were consumable, are needed, and cannot be read now."""
    return tuple(decision for decision in plan.decisions if _is_lost(decision))


def _waits(decision: Decision) -> bool:
    """Whether the partition may not be read before what it was made from is judged anew."""
    return decision.ended is not None and decision.ended.place[0] != decision.stage


def _followed_by(region: Region, regions: Sequence[Region]) -> frozenset[str]:
    by_name = {other.name: other for other in regions}
    found: set[str] = set()
    rest = list(region.upstream)
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest.extend(by_name[name].upstream)
    return frozenset(found)


def _lost_in(region: Region, plan: ResumePlan) -> Mapping[str, frozenset[int]]:
    lost = {
        stage: frozenset(
            _partitions(decision for decision in plan.of(stage) if _is_made_anew(decision) or _is_lost(decision))
        )
        for stage in region.stages
    }
    return {stage: partitions for stage, partitions in lost.items() if partitions}


def _is_made_anew(decision: Decision) -> bool:
    return isinstance(decision, RunDecision) and decision.anew


def _is_lost(decision: Decision) -> bool:
    unreadable = decision.record is not None and decision.record.state in (
        PartitionState.RELEASED,
        PartitionState.DAMAGED,
    )
    return decision.action is Action.HEAL or (decision.action is Action.RUN and unreadable)


def _partitions(decisions: Iterable[Decision]) -> tuple[int, ...]:
    return tuple(decision.partition for decision in decisions)
