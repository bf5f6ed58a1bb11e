"""Compares one recorded partition with the key it would get now, and says what that means in the user's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagehold.code.sql_job import shown_job
from stagehold.model.choices import CodeChoice, CodeHandling
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.keys.compute_key import ComputeKey, KeyPart, changed_reads, digest, reads_part
from stagehold.model.keys.key_groups import HASH_NAME
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import Detail, Reason, because, joined
from stagehold.plan.resume.decisions import (
    BlockedDecision,
    Decision,
    HealDecision,
    JudgeDecision,
    ReuseDecision,
    RunDecision,
)
from stagehold.plan.resume.kept_parts import began_otherwise, too_old, why_kept
from stagehold.plan.resume.situation import Situation
from stagehold.plan.resume.upstream import Upstream
from stagehold.plan.resume.waiving import is_waived, own_waiver_ended, waivers_of, who_waived, why_ended
from stagehold.plan.state.earlier_state import Cut
from stagehold.spec.pipeline import Exchange, Stage
from stagehold.spec.settings.output_settings import OnCodeChange, OnForeignChange

Opinion = tuple[type[Decision], Reason]  # of which kind a decision is, and why
AGAIN = "asked for: computed again, even if nothing changed"


def shared_key(stage: Stage, situation: Situation, hash_name: str = HASH_NAME) -> ComputeKey:
    """The key of a stage's partitions without their inputs, which are the only part that differs between them."""
    facts = situation.of(stage.name).facts
    # What an input is given as is all that the function knows of its stage, which may be called otherwise by now.
    inputs = ";".join(f"{edge.given_as}:{edge.exchange}:{','.join(edge.key)}" for edge in stage.inputs)
    hashed = hash_name if any(edge.exchange is Exchange.KEYED for edge in stage.inputs) else ""
    shape = (
        stage.job,
        inputs,
        str(stage.partitions),
        str(stage.max_parallelism),
        ",".join(stage.key),
        hashed,
        str(stage.per_wave),
    )
    kept = (repr(stage.states),) if stage.states else ()
    output = (stage.output.type, stage.output.table or "")
    promised = (*_never_null(stage), *_spark(stage, situation), *_arguments(stage))
    settings = digest((*shape, *output, *kept, *filter(None, (facts.quarantine,)), *promised))
    params = digest((situation.params, repr(sorted(stage.params.items()))))
    return ComputeKey(facts.code, settings, situation.environment, params, "", reads_part(facts.reads))


def _never_null(stage: Stage) -> tuple[str, ...]:
    """The columns that are declared to have no NULL: what was stored before has not been looked at for any."""
    names = sorted(name for name, column in stage.output.columns.items() if not column.null)
    return (f"never NULL {names}",) if names else ()


def _arguments(stage: Stage) -> tuple[str, ...]:
    return (f"args {list(stage.args)}",) if stage.args else ()


def _spark(stage: Stage, situation: Situation) -> tuple[str, ...]:
    """What is declared of Spark's settings; nothing at all where nothing is, so that keys from before there were any
    stay as they are.
    """
    declared = situation.pipeline.spark_of(stage)
    return (f"spark {sorted(declared.items())}",) if declared else ()


def identities(
    stage: Stage,
    situation: Situation,
    upstreams: Sequence[Upstream],
    partition: int,
    record: PartitionRecord | None,
) -> Iterator[str]:
    """Everything one partition is made from."""
    if stage.source:
        yield situation.of(stage.name).facts.splits[partition]
    yield from (upstream.identity(partition) for upstream in upstreams)
    earlier = situation.of(stage.name).earlier
    if earlier:
        yield earlier.identity(stage.states, partition, Cut(stage.partitions, stage.max_parallelism), record)


def judge(
    stage: Stage, record: PartitionRecord | None, key: ComputeKey, situation: Situation, upstreams: Sequence[Upstream]
) -> Opinion:
    """Compare one partition's record with its wanted key."""
    if not stage.output.stored:
        return _judge_unstored(stage, situation)
    if record is None:
        return RunDecision, _why_first(stage)
    if record.state is PartitionState.DAMAGED:
        return HealDecision, because(Detail(record.reason or "its content is damaged"))
    if situation.of(stage.name).order.forces(record.partition):
        return RunDecision, because(
            AGAIN if situation.confined else "asked for: restore starts at or before this stage"
        )
    changes = _changes(stage, record, key, situation)
    kept = {change: why for change in changes if (why := _why_it_counts(change, stage, record, key, situation))}
    counting = [change for change in changes if change not in kept]
    if counting:
        return RunDecision, joined([_in_words(change, stage, record, situation, upstreams) for change in counting])
    if why_old := too_old(stage, record, situation):
        return RunDecision, because(why_old)
    return _judge_unchanged(stage, record, situation, "; ".join(kept.values()) or None)


def _judge_unchanged(stage: Stage, record: PartitionRecord, situation: Situation, why_it_counts: str | None) -> Opinion:
    """The record is what would be computed: the verdict of its gate decides."""
    if own_waiver_ended(stage, record, situation):
        return _judge_ended(stage, record, situation)
    if record.state is PartitionState.RELEASED:
        return ReuseDecision, because("released: nothing that runs reads it")
    if _is_unjudged(stage, record, situation):
        return _judge_again(stage, record, situation)
    if record.state is PartitionState.HELD and not situation.of(stage.name).facts.whole:
        return _judge_let_go(stage, record, situation)
    if record.refused:
        return _judge_waived(stage, record, situation)
    if record.state is PartitionState.HELD:
        return _judge_held(stage, record, situation)
    return _judge_consumable(stage, record, situation, why_it_counts)


def _judge_held(stage: Stage, record: PartitionRecord, situation: Situation) -> Opinion:
    """The decision on a held partition, as if it could be read: the verdict on the whole stage decides whether it
    can.
    """
    if record.partition in situation.of(stage.name).data.gone:
        return RunDecision, because("it was held, and its data is gone from the lake")
    return ReuseDecision, because("held, and nothing it follows from changed")


def _judge_let_go(stage: Stage, record: PartitionRecord, situation: Situation) -> Opinion:
    """The decision on a partition that passed, when the reason that held it back is over: the data that it was made
    from could not be read.
    """
    held = _judge_held(stage, record, situation)
    if held[0] is not ReuseDecision:
        return held
    return JudgeDecision, because("held, and nothing holds it back any more; it is published, and nothing is computed")


def _judge_ended(stage: Stage, record: PartitionRecord, situation: Situation) -> Opinion:
    """The decision on a partition that its gate refuses and that no waiver lets any more, unless its gate has
    changed.
    """
    if record.judged == situation.of(stage.name).facts.gate:
        return BlockedDecision, why_ended(record, stage, situation)
    gone = record.partition in situation.of(stage.name).data.gone or record.state is PartitionState.RELEASED
    if gone:
        return RunDecision, because(f"its gate {stage.gate} changed, and its data is gone from the lake")
    return JudgeDecision, because(f"its gate {stage.gate} changed; its data is there, and nothing is computed")


def _judge_consumable(
    stage: Stage, record: PartitionRecord, situation: Situation, why_it_counts: str | None
) -> Opinion:
    change = situation.of(stage.name).data.removed.get(record.partition)
    if change and stage.output.on_foreign_change is OnForeignChange.KEEP:
        return ReuseDecision, because(f"{change}, which is kept as its output says")
    return ReuseDecision, because(
        f"consumable; {why_it_counts}" if why_it_counts else "consumable, and nothing it follows from changed"
    )


def ask_about(change: ForeignChange) -> Reason:
    """Why a partition is blocked that somebody else removed."""
    return because(f"{change}; on_foreign_change of its output says whether to heal or to keep that")


def take(record: PartitionRecord, key: ComputeKey | None, upstreams: Sequence[Upstream]) -> Opinion:
    """The decision to take a consumable partition as it is recorded, unless it was made from data that came out
    different since.
    """
    unexplained_change = _unexplained_change(record.partition, upstreams)
    if unexplained_change and key is not None and "inputs" in key.changes_since(record.compute_key):
        return HealDecision, unexplained_change
    return ReuseDecision, because("consumable, and taken as it is recorded")


def _is_unjudged(stage: Stage, record: PartitionRecord, situation: Situation) -> bool:
    """Whether the verdict of its gate no longer counts. A partition that passed stays consumable if its gate is taken
    away.
    """
    gate = situation.of(stage.name).facts.gate
    if record.state is PartitionState.BLOCKED:
        return record.judged != gate or not record.refused  # an old version did not record why it is blocked
    return record.judged != gate and bool(gate)


def _judge_again(stage: Stage, record: PartitionRecord, situation: Situation) -> Opinion:
    """The decision on a partition whose gate changed. Data that cannot be read is not judged: if it had passed, it
    counts until it is needed and healed.
    """
    gone = record.partition in situation.of(stage.name).data.gone
    if record.state.counts_as_done and (gone or situation.of(stage.name).data.removed.get(record.partition)):
        return ReuseDecision, because("consumable; its gate changed, and judges it when it is computed again")
    told = f"its gate {stage.gate} changed" if stage.gate else "its gate was taken away"
    if gone:
        return RunDecision, because(f"{told}, and its data is gone from the lake")
    return JudgeDecision, because(f"{told}; its data is there, and nothing is computed")


def _judge_waived(stage: Stage, record: PartitionRecord, situation: Situation) -> Opinion:
    """The decision on refused data: readers may read it as long as every expectation that it does not meet is
    waived.
    """
    gate, words = situation.of(stage.name).facts.gate, waivers_of(record, situation.of(stage.name).words.waivers)
    if is_waived(record, words):
        told = who_waived(words)
        if record.state is PartitionState.HELD:
            return _judge_held(stage, record, situation)
        if record.state.counts_as_done:
            return ReuseDecision, because("consumable; ").and_then(*told.parts)
        if record.partition in situation.of(stage.name).data.gone:
            return RunDecision, told.and_then("; its data is gone from the lake")
        return JudgeDecision, told.and_then("; its data is there, and nothing is computed")
    if record.state.counts_as_done:
        why = "its gate refuses it, and nobody let it through" if gate else "its gate was taken away"
        return JudgeDecision, because(f"{why}; its data is there, and nothing is computed")
    return BlockedDecision, because(Detail(record.reason or "the gate said no"))


def _judge_unstored(stage: Stage, situation: Situation) -> Opinion:
    problem = situation.of(stage.name).facts.code_problem
    if problem:
        return RunDecision, because(f"its code cannot be compared: {problem}")
    worth = f": {stage.output.worth}" if stage.output.worth else ""
    return RunDecision, because(f"computed together with its reader; its output is not stored{worth}")


def _why_first(stage: Stage) -> Reason:
    fallback, worth = stage.output.fallback, stage.output.worth
    if fallback:
        why = f"an attempt that computed both at once failed ({fallback.rule})"
        return because(f"stored before its reader runs, since {why}")
    if worth:
        return because(f"stored before its reader runs: {worth}")
    return because("never computed for this interval")


def _changes(stage: Stage, record: PartitionRecord, key: ComputeKey, situation: Situation) -> tuple[str, ...]:
    """The parts of the key that differ from the record; none when the stage's records are taken as they are. A run that
    was told where to work takes no record that may not be read.
    """
    if situation.of(stage.name).order.accepted and (record.state.counts_as_done or situation.confined is None):
        return ()
    changes = key.changes_since(record.compute_key)
    return (
        ("code", *changes)
        if situation.of(stage.name).facts.code_problem and not {"code", "record format"} & set(changes)
        else changes
    )


def _why_it_counts(
    change: str, stage: Stage, record: PartitionRecord, key: ComputeKey, situation: Situation
) -> str | None:
    """Why data still counts that was made with another one of what ``change`` names. Refused data is always tried
    again.
    """
    if not record.state.counts_as_done:
        return None
    if change == KeyPart.CODE:
        made_by, choice = ComputeKey.parse(record.compute_key), situation.of(stage.name).order.code_choice
        if choice and made_by and made_by.code in choice.made_by:
            return _why_chosen(choice)
        if stage.on_code_change is OnCodeChange.KEEP:
            return "made by other code, and kept since the stage says on_code_change: keep"
    return why_kept(change, stage, record, key, situation)


def _why_chosen(choice: CodeChoice) -> str | None:
    """Why data of other code counts, as it was chosen for a run; None if it does not. A run that begins with a
    checkpoint may be told otherwise than the stage declares.
    """
    why = f": {choice.reason}" if choice.reason else ""
    match choice.handling:
        case CodeHandling.RECOMPUTE:
            return None
        case CodeHandling.KEEP:
            return f"made by other code, which {choice.said_by} keeps for this run{why}"
        case CodeHandling.ACCEPT:
            return f"made by other code, which {choice.said_by} accepted{why}"


def _in_words(
    change: str, stage: Stage, record: PartitionRecord, situation: Situation, upstreams: Sequence[Upstream]
) -> Reason:
    problem = situation.of(stage.name).facts.code_problem
    match change:
        case "code":
            changed = f"the code of {shown_job(stage.job)} changed"
            return because(f"its code cannot be compared: {problem}" if problem else changed)
        case "settings":
            return because("the settings of the stage changed")
        case "environment":
            return because("the Spark or Python environment changed")
        case "params":
            return because("parameters changed")
        case "inputs" if interval := began_otherwise(stage, record, situation):
            return because(f"what {stage.name} kept in {interval} changed")
        case "inputs" if stage.source:
            return because("its source changed")
        case "inputs":
            return _unexplained_change(record.partition, upstreams) or _changed_input(upstreams, situation)
        case "reads":
            return _changed_reads(stage, record, situation)
    return because("it was recorded in a format this version cannot read")


def _changed_reads(stage: Stage, record: PartitionRecord, situation: Situation) -> Reason:
    before = ComputeKey.parse(record.compute_key)
    told = ", ".join(changed_reads(situation.of(stage.name).facts.reads, before)) if before else ""
    return because(f"reads: {told or 'what it reads beside its inputs changed'}")


def _changed_input(upstreams: Sequence[Upstream], situation: Situation) -> Reason:
    """The reason that an input changed. Code, inputs and reads of a stage that is computed along, or might be, are a
    part of what its reader reads.
    """
    along = [upstream.along for upstream in upstreams if upstream.along]
    parts = "code, inputs or reads" if any(situation.of(name).facts.reads for name in along) else "code or inputs"
    return because(
        f"an input was computed anew, or the {parts} of {' and '.join(along)} changed"
        if along
        else "an input was computed anew"
    )


def _unexplained_change(partition: int, upstreams: Sequence[Upstream]) -> Reason | None:
    return next((told for upstream in upstreams if (told := upstream.unexplained_change(partition))), None)
