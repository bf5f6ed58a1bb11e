"""Partitions of a plan that are computed only because they were released and something that runs reads them; in words,
for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from stagehold.model.partition_set import PartitionSet
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan


@dataclass(frozen=True)
class ReleasedOutput:
    """Partitions of a stage that were released and are needed. ``seconds`` is how long they took when they were last
    computed, None if no partition of the stage was ever timed.
    """

    stage: str
    partitions: PartitionSet
    seconds: float | None


def released_outputs(plan: ResumePlan) -> tuple[ReleasedOutput, ...]:
    """Released outputs that are needed, by stages, in their order. Partitions that would run anyway are left out."""
    return tuple(_released_outputs(plan))


def _released_outputs(plan: ResumePlan) -> Iterator[ReleasedOutput]:
    for stage, decisions in plan.by_stage.items():
        needed = [decision for decision in decisions if decision.action is Action.HEAL and _was_released(decision)]
        if needed:
            partitions = PartitionSet(decision.partition for decision in needed)
            yield ReleasedOutput(stage, partitions, _seconds(needed, decisions))


def _was_released(decision: Decision) -> bool:
    return decision.record is not None and decision.record.state is PartitionState.RELEASED


def _seconds(needed: Sequence[Decision], decisions: Sequence[Decision]) -> float | None:
    """How long they took. A partition that was never timed counts as an average one of its stage."""
    timed = {
        decision.partition: decision.record.seconds
        for decision in decisions
        if decision.record and decision.record.seconds is not None
    }
    if not timed:
        return None
    average = fmean(timed.values())
    return sum(timed.get(decision.partition, average) for decision in needed)


def released_text(needed: Mapping[str, Sequence[ReleasedOutput]], restored_from: str | None = None) -> str | None:
    """A sentence about all released outputs that are needed; None if none is.

    :param needed: by interval, in their order.
    :param restored_from: the stage at which the run or runs were told to begin, if any.
    """
    by_stage: dict[str, dict[str, ReleasedOutput]] = {}
    for interval, outputs in needed.items():
        for output in outputs:
            by_stage.setdefault(output.stage, {})[interval] = output
    if not by_stage:
        return None
    begins = (f"restores from {restored_from}",) if restored_from else ()
    return "; ".join((*begins, *(_of_stage(stage, found) for stage, found in by_stage.items())))


def _of_stage(stage: str, found: Mapping[str, ReleasedOutput]) -> str:
    intervals = [*found]
    which = intervals[0] if len(intervals) == 1 else f"{intervals[0]} to {intervals[-1]} ({len(intervals)} intervals)"
    count = sum(len(output.partitions) for output in found.values())
    noun = "partition" if count == 1 else "partitions"
    return f"{stage} of {which} was released: {count:,} {noun}, {_time([output.seconds for output in found.values()])}"


def _time(seconds: Iterable[float | None]) -> str:
    known = [spent for spent in seconds if spent is not None]
    if not known:
        return "which were never timed"
    total = sum(known)
    return f"about {total:,.0f} s" if total >= 10 else f"about {total:.1f} s"
