"""What a plan costs and what it saves, from how long partitions took the last time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from stagehold.model.records import PartitionRecord
from stagehold.plan.resume.decisions import Decision, ResumePlan

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
