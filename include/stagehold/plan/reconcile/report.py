"""What ledger and lake say differently, for people and programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stagehold.model.backfill import Backfill
from stagehold.model.checkpoint_records import CheckpointRecord
from stagehold.model.records import (
    Acceptance,
    Attempt,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    StageVerdict,
    TakenPosition,
    Waiver,
)

WORDS = {Acceptance: "acceptances", Waiver: "waivers"}
OF_CELLS = {
    GateResult: "gate results",
    StageVerdict: "stage verdicts",
    TakenPosition: "source positions",
    PartitionCount: "partition count",
}


class Difference(StrEnum):
    """How ledger and lake disagree about something. The first four are repaired."""

    ROW_MISSING = "row_missing"  # the lake's chronicle has it
    COMMIT_UNRECORDED = "commit_unrecorded"  # the table's log has it, and no record does
    NOT_CHRONICLED = "not_chronicled"  # only the ledger has it
    EPOCH_BEHIND = "epoch_behind"  # the ledger would give out an epoch again
    ROW_UNCOMMITTED = "row_uncommitted"  # the table's log has no commit of what is recorded
    DATA_CHANGED = "data_changed"  # a recorded file is gone, or has another size
    TORN = "torn"  # a file of the chronicle is not what was written

    @property
    def repaired(self) -> bool:
        return self in (
            Difference.ROW_MISSING,
            Difference.COMMIT_UNRECORDED,
            Difference.NOT_CHRONICLED,
            Difference.EPOCH_BEHIND,
        )

    @property
    def needs_a_person(self) -> bool:
        """What is neither repaired nor made again by the next run that needs it."""
        return self in (Difference.ROW_UNCOMMITTED, Difference.TORN)


@dataclass(frozen=True)
class Disagreement:
    """One kind of difference about one subject; ``partitions`` are those that it is about, if it is about any.

    ``pipeline`` and ``interval`` are None where it is about no single one; ``count`` is of rows, commits or files.
    """

    difference: Difference
    pipeline: str | None
    interval: str | None
    subject: str
    count: int
    partitions: tuple[int, ...] = ()
    detail: str = ""


def disagreements(difference: Difference, facts: Iterable[Fact], runs: Mapping[str, Run]) -> Sequence[Disagreement]:
    """All ``facts`` differ in the same way; one disagreement for those with the same subject.

    :param runs: by id; they say which interval a restore is of.
    """
    found: dict[tuple[str | None, str | None, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        found[_place(fact, runs)].append(fact)
    return [
        Disagreement(difference, *place, count=len(some), partitions=_partitions(some)) for place, some in found.items()
    ]


def _partitions(facts: Iterable[Fact]) -> tuple[int, ...]:
    return tuple(sorted({fact.partition for fact in facts if isinstance(fact, PartitionRecord | GateResult | Waiver)}))


def _place(fact: Fact, runs: Mapping[str, Run]) -> tuple[str | None, str | None, str]:
    match fact:
        case Run():
            return fact.pipeline, fact.interval, "runs"
        case Attempt():
            return fact.pipeline, fact.interval, f"attempts of {fact.region}"
        case CheckpointRecord():
            return fact.pipeline, fact.interval, "checkpoints"
        case Restore():
            run = runs.get(fact.run_id)
            return (run.pipeline, run.interval, "restores") if run else (None, None, "restores")
        case Backfill():
            return fact.pipeline, None, "backfills"
        case Acceptance() | Waiver():
            return fact.pipeline, fact.interval, f"{WORDS[type(fact)]} of {fact.stage}"
        case GateResult() | StageVerdict() | TakenPosition() | PartitionCount():
            return fact.cell.pipeline, fact.cell.interval, f"{OF_CELLS[type(fact)]} of {fact.cell.stage}"
        case PartitionRecord():
            return fact.cell.pipeline, fact.cell.interval, fact.cell.stage
