"""A plan in words: decisions of one stage that share action and reason become one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from stagehold.plan.resume import Action, ResumePlan


@dataclass(frozen=True)
class Explanation:
    """Some partitions of a stage and what happens to them; ``total`` is how many the stage has."""

    stage: str
    action: Action
    reason: str
    partitions: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        which = "" if len(self.partitions) == self.total else f" ({partition_ranges(self.partitions)})"
        return f"{self.stage}: {self.action} {len(self.partitions)} of {self.total} partitions{which}: {self.reason}"


def explain(plan: ResumePlan, stages: Iterable[str] | None = None) -> tuple[Explanation, ...]:
    """Lines in the order of the stages; within a stage in the order of its first partitions."""
    lines = []
    for stage in plan.by_stage if stages is None else stages:
        grouped: dict[tuple[Action, str], list[int]] = {}
        for decision in plan.of(stage):
            grouped.setdefault((decision.action, decision.reason), []).append(decision.partition)
        total = len(plan.of(stage))
        lines += [Explanation(stage, action, reason, tuple(partitions), total) for (action, reason), partitions in grouped.items()]
    return tuple(lines)


def partition_ranges(partitions: Sequence[int]) -> str:
    """Ascending numbers with neighbours joined: 0-3, 7."""
    runs = [list(run) for _, run in groupby(enumerate(partitions), key=lambda pair: pair[1] - pair[0])]
    bounds = ((run[0][1], run[-1][1]) for run in runs)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in bounds)
