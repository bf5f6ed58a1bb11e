"""What a plan costs and what it saves, from how long partitions took the last time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import fmean

from stagehold.model.records import Attempt, PartitionRecord
from stagehold.plan.resume import Decision, ResumePlan

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


def recorded_seconds(attempts: Iterable[Attempt], records: Sequence[PartitionRecord]) -> Seconds:
    """How long each recorded partition took: its share of its wave, which took the time since the wave before it.

    Keys are stage ids. Records whose attempt is not among ``attempts`` tell nothing. The newest record of a partition counts.
    """
    started = {attempt.attempt_id: attempt.started_at for attempt in attempts}
    seconds: dict[str, dict[int, float]] = {}
    in_order = sorted((each for each in records if each.attempt_id in started), key=lambda each: (each.recorded_at, *_wave(each)))
    for (attempt, stage, _), wave in groupby(in_order, _wave):
        partitions = list(wave)
        ended = partitions[-1].recorded_at
        share = _between(started[attempt], ended) / len(partitions)
        started[attempt] = ended
        seconds.setdefault(stage, {}).update({record.partition: share for record in partitions})
    return seconds


def _wave(record: PartitionRecord) -> tuple[str, str, int]:
    return record.attempt_id, record.cell.stage, record.wave


def _between(start: datetime, end: datetime) -> float:
    """Clocks of two machines may disagree; no work takes less than nothing."""
    return max(0.0, (end - start).total_seconds())


def _sum(decisions: Iterable[Decision], seconds: Seconds, averages: Mapping[str, float]) -> float:
    return sum(seconds[each.stage].get(each.partition, averages[each.stage]) for each in decisions if each.stage in averages)
