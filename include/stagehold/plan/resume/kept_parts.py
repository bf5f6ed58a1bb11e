"""Data that counts although something changed that it was made with, by the word of a pipeline, of a stage, or of a
person; and data that counts no more because it is old.
"""

from __future__ import annotations

from stagehold.model.keys.compute_key import ComputeKey, KeyPart
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.model.units import write_duration
from stagehold.plan.grounds.content_verdicts import acceptance_of
from stagehold.plan.resume.situation import Situation
from stagehold.plan.state.earlier_state import Cut
from stagehold.spec.pipeline import Stage

IN_WORDS = {
    KeyPart.CODE: "by other code",
    KeyPart.PARAMS: "with other parameters",
    KeyPart.ENVIRONMENT: "in another environment",
    KeyPart.SOURCES: "from other contents of its source",
}


def why_kept(change: str, stage: Stage, record: PartitionRecord, key: ComputeKey, situation: Situation) -> str | None:
    """Why a record counts under a ``key`` from which it differs in what ``change`` names; None if it does not."""
    part = next((part for part in KeyPart if part.cause == change), None)
    made_by = ComputeKey.parse(record.compute_key)
    if part is None or made_by is None or not _may_keep(part, stage, record, situation):
        return None
    made = f"made {IN_WORDS[part]}"
    for whose, kept in (("stage", stage.keep), ("pipeline", situation.pipeline.keep)):
        if part in kept:
            return f"{made}, and kept since the {whose} says keep: {part}"
    word = acceptance_of(part.of(made_by), part.of(key), situation.of(stage.name).words.acceptances, part)
    return f"{made}, which {word.accepted_by} accepted: {word.reason}" if word else None


def _may_keep(part: KeyPart, stage: Stage, record: PartitionRecord, situation: Situation) -> bool:
    """What a stage reads of other stages is theirs to keep, and so is what it kept itself in an earlier interval."""
    if part is not KeyPart.SOURCES:
        return True
    return stage.source is not None and began_otherwise(stage, record, situation) is None


def began_otherwise(stage: Stage, record: PartitionRecord, situation: Situation) -> str | None:
    """The interval that by now keeps other state than the partition began with."""
    earlier, cut = situation.of(stage.name).earlier, Cut(stage.partitions, stage.max_parallelism)
    return earlier.interval if earlier and earlier.changed_since(record, stage.states, cut) else None


def too_old(stage: Stage, record: PartitionRecord, situation: Situation) -> str | None:
    """Why a consumable partition is stale by its age alone; None if it is not."""
    if stage.oldest is None or situation.now is None or record.state is not PartitionState.CONSUMABLE:
        return None
    if situation.now - record.recorded_at <= stage.oldest:
        return None
    return f"older than max_age: {write_duration(stage.oldest)} (made {record.recorded_at:%Y-%m-%d %H:%M} UTC)"
