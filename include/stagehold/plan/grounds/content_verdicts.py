"""What a gate has said of all partitions of a stage together, found by their content."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.model.keys.compute_key import digest
from stagehold.model.records import PartitionRecord, StageVerdict


def content_of(records: Iterable[PartitionRecord]) -> str:
    """Equal for equal content of all partitions of a stage."""
    ordered = sorted(records, key=lambda one: one.partition)
    return digest(text for one in ordered for text in (str(one.partition), one.fingerprint))


@dataclass(frozen=True)
class ContentVerdicts:
    """What is on record of what a stage's gate said of all partitions, oldest first."""

    verdicts: tuple[StageVerdict, ...] = ()

    def of(self, content: str, judged: str) -> StageVerdict | None:
        """The newest of this content by these expectations: whoever computed it, it need not be judged again."""
        alike = (one for one in reversed(self.verdicts) if (one.fingerprint, one.judged) == (content, judged))
        return next(alike, None)

    def newest_of(self, content: str) -> StageVerdict | None:
        """What was said of this content last, by whatever expectations."""
        return next((one for one in reversed(self.verdicts) if one.fingerprint == content), None)
