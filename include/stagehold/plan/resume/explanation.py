"""A plan in words: decisions of one stage that share the action and the kind of reason become one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stagehold.model.partition_set import PartitionSet
from stagehold.plan.grounds.reasons import in_one_line
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan


@dataclass(frozen=True)
class Explanation:
    """Some partitions of a stage and what happens to them; ``total`` is how many the stage has."""

    stage: str
    action: Action
    reason: str
    partitions: PartitionSet
    total: int

    def __str__(self) -> str:
        which = "" if len(self.partitions) == self.total else f" ({self.partitions})"
        return f"{self.stage}: {self.action} {len(self.partitions)} of {self.total} partitions{which}: {self.reason}"


def explain(plan: ResumePlan, stages: Iterable[str] | None = None) -> tuple[Explanation, ...]:
    """Lines in the order of the stages; within a stage in the order of its first partitions."""
    return tuple(
        line for stage in (plan.by_stage if stages is None else stages) for line in _lines(stage, plan.of(stage))
    )


def _lines(stage: str, decisions: Sequence[Decision]) -> Iterable[Explanation]:
    kinds: dict[tuple[object, ...], list[Decision]] = {}
    for decision in decisions:
        kinds.setdefault((decision.action, decision.reason.kind), []).append(decision)
    for alike in kinds.values():
        partitions = PartitionSet(decision.partition for decision in alike)
        reason = in_one_line([decision.reason for decision in alike])
        yield Explanation(stage, alike[0].action, reason, partitions, len(decisions))
