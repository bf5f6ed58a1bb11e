"""What may be shown no more: data that a gate refuses and that somebody's word let through which holds no more, and
what was made from it.

Once a word was needed for data, it is in tables only as long as its gate lets it, or a word does. A word is about the
data that was there when it was said: before other data is computed in its place, what was let by it leaves the tables,
since nobody knows yet whether that will be let.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stagehold.model.compute_key import ComputeKey
from stagehold.model.records import PartitionRecord, PartitionState, RefusedData
from stagehold.plan.resume.content_verdicts import ContentVerdicts, content_of
from stagehold.plan.resume.decisions import Action, Decision, Situation
from stagehold.plan.resume.reasons import Detail, Reason, because
from stagehold.plan.resume.waiving import is_waived
from stagehold.spec.pipeline import OnWaiverEnd, Stage


def own_word_ended(stage: Stage, record: PartitionRecord | None, situation: Situation) -> bool:
    """Whether the gate of the stage refuses the partition, and nobody's word lets it any more. Without a gate nobody
    refuses anything.
    """
    return record is not None and bool(situation.facts[stage.name].gate) and _has_ended(record, stage, situation)


def word_for_all_ended(stage: Stage, records: Sequence[PartitionRecord], situation: Situation) -> bool:
    """The same of all partitions of the stage together."""
    if not situation.facts[stage.name].whole or not records:
        return False
    verdict = situation.verdicts.get(stage.name, ContentVerdicts()).newest_of(content_of(records))
    return verdict is not None and _has_ended(verdict, stage, situation)


def _has_ended(data: RefusedData, stage: Stage, situation: Situation) -> bool:
    words, ended = situation.waivers.get(stage.name, ()), situation.ended_waivers.get(stage.name, ())
    said = any(one.holds_for(data) for one in (*words, *ended))
    return said and bool(data.refused) and not is_waived(data, words)


def about_to_be_replaced(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions, with those ended that a word let and in whose place, or that of others which it let together with
    them, something else is computed.
    """
    replaced = {one.partition for one in drafted if one.action is Action.RUN and _is_let(one, stage, situation)}
    if any(one.action is Action.RUN and one.record for one in drafted) and _are_let_together(stage, drafted, situation):
        replaced = {one.partition for one in drafted}
    return [
        replace(one, ended=(stage.name, one.partition)) if one.partition in replaced and not one.ended else one
        for one in drafted
    ]


def _is_let(decision: Decision, stage: Stage, situation: Situation) -> bool:
    refused = decision.record is not None and bool(decision.record.refused)
    return refused and bool(situation.facts[stage.name].gate)


def _are_let_together(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> bool:
    records = [one.record for one in drafted if one.record is not None]
    if not situation.facts[stage.name].whole or not records:
        return False
    verdict = situation.verdicts.get(stage.name, ContentVerdicts()).newest_of(content_of(records))
    return verdict is not None and bool(verdict.refused)


def made_from(record: PartitionRecord, key: ComputeKey) -> bool:
    """Whether the partition was made from the very inputs that this key names, whatever else changed."""
    recorded = ComputeKey.parse(record.compute_key)
    return recorded is not None and recorded.inputs == key.inputs


def why_ended(record: RefusedData, stage: Stage, situation: Situation) -> Reason:
    """Why data is blocked of which a word has ended."""
    ended = [one for one in situation.ended_waivers.get(stage.name, ()) if one.holds_for(record)]
    words = [
        f"the word of {one.waived_by} has ended ({one.reason})" for one in ended if one.expectation in record.refused
    ]
    return because(Detail("; ".join(("; ".join(record.refused) + " is not met", *dict.fromkeys(words)))))


def as_retracted(record: PartitionRecord) -> PartitionRecord:
    """The partition without its rows in the table: what its own gate refuses is blocked, and what was made from that is
    held until it may be read again.
    """
    if record.state is PartitionState.DAMAGED:
        return replace(record, version=None)
    return replace(record, version=None, state=PartitionState.BLOCKED if record.refused else PartitionState.HELD)


def as_blocked(record: PartitionRecord) -> PartitionRecord:
    """The partition with its rows in the table, read by nobody else."""
    return replace(record, state=PartitionState.BLOCKED)


def with_consequences(stage: Stage, decisions: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions, and what becomes of rows that are in the stage's table and may be shown no more."""
    return [_with_consequence(stage, one, situation) if one.ended else one for one in decisions]


def _with_consequence(stage: Stage, decision: Decision, situation: Situation) -> Decision:
    record = decision.record
    awaited = decision.partition in situation.restored.get(stage.name, ())
    if record is None or not record.in_table or awaited:
        return decision
    retracts = stage.output.on_waiver_end is OnWaiverEnd.RETRACT
    told = "".join(_told(stage, decision, retracts=retracts))
    return replace(decision, retracts=retracts, reason=decision.reason.and_then(told))


def _told(stage: Stage, decision: Decision, *, retracts: bool) -> Iterator[str]:
    where = stage.output.table or "its table"
    yield f"; its rows are taken out of {where}" if retracts else f"; its rows stay in {where}, and are marked"
    if decision.action is Action.REUSE:
        yield " until it may be read again"
    if decision.action.computes:
        yield " until then"
