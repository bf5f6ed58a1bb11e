"""How ledger and lake differ, for people and programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stagehold.ledger.kinds import BY_TYPE, FactKind, Where
from stagehold.model.records import Fact, Run


class Difference(StrEnum):
    """Kinds of differences between ledger and lake. The first four are repaired."""

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
        """Whether it is neither repaired nor made again by the next run that needs it."""
        return self in (Difference.ROW_UNCOMMITTED, Difference.TORN)


@dataclass(frozen=True)
class Disagreement:
    """A difference of one kind about one subject. ``partitions`` names the partitions that it is about, if any.

    ``pipeline`` and ``interval`` are None if it is about several; ``count`` is of rows, commits or files.
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
        kind = BY_TYPE[type(fact)]
        found[*_where(kind, fact, runs), kind.subject_of(fact)].append(fact)
    return [
        Disagreement(difference, *place, count=len(facts), partitions=_partitions(facts))
        for place, facts in found.items()
    ]


def _where(kind: FactKind[Any], fact: Any, runs: Mapping[str, Run]) -> Where:
    if kind.where:
        return kind.where(fact)
    run = runs.get(fact.run_id)
    return (run.pipeline, run.interval) if run else (None, None)


def _partitions(facts: Iterable[Fact]) -> tuple[int, ...]:
    named = ((BY_TYPE[type(fact)].partition, fact) for fact in facts)
    return tuple(sorted({partition_of(fact) for partition_of, fact in named if partition_of}))
