"""A plan for people: in words, and what it costs and saves, from how long partitions took the last time.

Decisions of one stage that share the action and the kind of reason become one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import PartitionRecord
from stagehold.plan.grounds.reasons import in_one_line
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan

Seconds = Mapping[str, Mapping[int, float]]  # by stage and partition


@dataclass(frozen=True)
class Estimate:
    """Partitions that run and those that need not, with their seconds of work where these are known.

    :param unknown: stages of which no partition was ever timed; their seconds are missing in both sums.
    """

    runs: int
    saved: int
    run_seconds: float
    saved_seconds: float
    unknown: tuple[str, ...]


def estimate(plan: ResumePlan, seconds: Seconds) -> Estimate:
    """A partition that was never timed is taken for an average one of its stage."""
    running = [decision for decision in plan.decisions if decision.action.computes]
    saved = [decision for decision in plan.decisions if not decision.action.computes]
    averages = {stage: fmean(timed.values()) for stage, timed in seconds.items() if timed}
    unknown = tuple(stage for stage in plan.by_stage if stage not in averages)
    return Estimate(len(running), len(saved), _sum(running, seconds, averages), _sum(saved, seconds, averages), unknown)


def recorded_seconds(records: Iterable[PartitionRecord]) -> Seconds:
    """How long each partition took when it was timed last, by stage id; ``records`` are oldest first."""
    seconds: dict[str, dict[int, float]] = {}
    for record in records:
        if record.seconds is not None:
            seconds.setdefault(record.cell.stage, {})[record.partition] = record.seconds
    return seconds


def _sum(decisions: Iterable[Decision], seconds: Seconds, averages: Mapping[str, float]) -> float:
    return sum(
        seconds[each.stage].get(each.partition, averages[each.stage]) for each in decisions if each.stage in averages
    )


@dataclass(frozen=True)
class Explanation:
    """Partitions of a stage to which the same happens, and why; ``total`` is how many the stage has."""

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
