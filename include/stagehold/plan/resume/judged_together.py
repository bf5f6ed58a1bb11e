"""Decides about partitions that a gate judges together: none of them is read before all may be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of, verdict_on
from stagehold.plan.grounds.reasons import Detail, Reason, because
from stagehold.plan.resume.decisions import Action, BlockedDecision, Decision, HealDecision, JudgeDecision
from stagehold.plan.resume.situation import Situation
from stagehold.plan.resume.waiving import is_waived, waivers_of, who_waived
from stagehold.spec.pipeline import Stage

WITH_ALL = "its gate judges it together with all others of the stage; nothing of it is computed"
MAY_BE_READ = "its gate lets all of the stage; it is published, and nothing is computed"


def together(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions on a stage whose gate judges all its partitions together; ``drafted`` are the decisions on each
    partition by itself.
    """
    if not situation.of(stage.name).facts.whole or not stage.output.stored or situation.of(stage.name).undecided:
        return list(drafted)
    obstacle = next((decision for decision in drafted if isinstance(decision, BlockedDecision)), None)
    if obstacle is not None:
        return [_held_up(decision, obstacle) for decision in drafted]
    if any(decision.action.computes for decision in drafted):
        return [_with_others(decision, situation) for decision in drafted]
    if any(decision.action is Action.JUDGE for decision in drafted):
        return [_to_judge(decision, WITH_ALL) for decision in drafted]
    return _by_verdict(stage, drafted, situation)


def _held_up(decision: Decision, obstacle: BlockedDecision) -> Decision:
    if decision.action is not Action.REUSE:
        return decision
    reason = because("is read together with ", obstacle.place, ", which is blocked")
    return replace(decision.turned(BlockedDecision, reason), foreign=obstacle.foreign, gap=obstacle.gap)


def _with_others(decision: Decision, situation: Situation) -> Decision:
    """The decision while some partitions are still computed: all partitions have to be there to be judged."""
    if decision.action is Action.REUSE and _is_away(decision, situation):
        reason = because("its data is gone, and its gate judges all of the stage together")
        return decision.turned(HealDecision, reason)
    return _to_judge(decision, WITH_ALL)


def _to_judge(decision: Decision, why: str) -> Decision:
    if decision.action is not Action.REUSE:
        return decision
    return replace(decision.turned(JudgeDecision, because(why)), together=True)


def _by_verdict(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions when all partitions are there as they are wanted."""
    records = [decision.record for decision in drafted if decision.record is not None]
    passed = all(record.state.counts_as_done for record in records)
    known = situation.of(stage.name)
    verdict = verdict_on(content_of(records), known.facts.whole, known.words.verdicts)
    if verdict is None:
        ended = any(decision.ended for decision in drafted)
        counts = (
            passed
            and not ended
            and (situation.of(stage.name).order.accepted or any(_is_away(decision, situation) for decision in drafted))
        )
        return list(drafted) if counts else [_to_judge(decision, WITH_ALL) for decision in drafted]
    words = situation.of(stage.name).words.waivers
    if verdict.refused and not is_waived(verdict, words):
        reason = because("all of its stage together is refused: ", Detail(verdict.reason or "the gate said no"))
        return [decision.turned(BlockedDecision, reason) for decision in drafted]
    waived = who_waived(waivers_of(verdict, words)) if verdict.refused else None
    return [_let(decision, waived) for decision in drafted]


def _let(decision: Decision, waived: Reason | None) -> Decision:
    if decision.record is not None and decision.record.state is PartitionState.HELD:
        return _to_judge(decision, MAY_BE_READ)
    if waived is None:
        return decision
    reason = decision.reason.and_then("; ", *waived.parts)
    return replace(decision, reason=reason, rests_on=decision.place)


def _is_away(decision: Decision, situation: Situation) -> bool:
    released = decision.record is not None and decision.record.state is PartitionState.RELEASED
    return released or decision.partition in situation.of(decision.stage).data.gone
