"""How a pipeline changed from interval to interval: how long stages took, how much data they made, which failures runs
had and how they went on. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from stagehold.airflow.pipeline_page.pipeline_responses import (
    PipelineHistory,
    PipelineRecoveries,
    Recovery,
    StageHistory,
)
from stagehold.ledger.across.intervals import LONGEST_FAILURE
from stagehold.ledger.partitions import StateFigures
from stagehold.model.records import Attempt, AttemptState
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Pipeline, Stage

Group = Sequence[StateFigures]
Value = TypeVar("Value", bound=float)


def pipeline_history(pipeline: Pipeline, intervals: Sequence[str], figures: Sequence[StateFigures]) -> PipelineHistory:
    together: dict[tuple[str, str], list[StateFigures]] = {}
    for one in figures:
        together.setdefault((one.stage, one.interval), []).append(one)
    stored = (stage for stage in pipeline.stages if stage.output.stored)
    return PipelineHistory(
        intervals=tuple(intervals),
        stages=tuple(_stage(stage, [together.get((stage.id, key), ()) for key in intervals]) for stage in stored),
    )


def _stage(stage: Stage, groups: Sequence[Group]) -> StageHistory:
    return StageHistory(
        stage=stage.name,
        seconds=_each(groups, lambda group: round(sum(one.seconds for one in group), 1)),
        rows=_each(groups, lambda group: sum(one.rows for one in group)),
        bytes=_each(groups, _bytes),
    )


def _each(groups: Sequence[Group], value: Callable[[Group], Value | None]) -> tuple[Value | None, ...]:
    return tuple(value(group) if group else None for group in groups)


def _bytes(group: Group) -> int | None:
    if any(one.state is PartitionState.RELEASED for one in group):
        return None
    return sum(one.bytes for one in group)


LOST = "The attempt ended without a word: its process was killed or its machine was lost."


def recoveries(tried: Sequence[Sequence[Attempt]], left: Mapping[str, tuple[int, float]]) -> PipelineRecoveries:
    """The failures that were followed by another try.

    :param tried: tries of the same partitions in one run, in the order in which they began.
    :param left: partitions of each attempt that were not computed again, and their seconds.
    """
    return PipelineRecoveries(recoveries=tuple(_recoveries(tried, left)))


def _recoveries(tried: Sequence[Sequence[Attempt]], left: Mapping[str, tuple[int, float]]) -> Iterator[Recovery]:
    for tries in tried:
        lost = [one for one in tries[:-1] if one.state is not AttemptState.FINISHED]
        if not lost:
            continue  # the last try failed, and none has followed it
        first, last = lost[0], tries[-1]
        kept = [left[one.attempt_id] for one in lost if one.attempt_id in left]
        yield Recovery(
            interval=last.interval,
            run_id=last.run_id,
            subject=last.subject,
            attempts=len(tries),
            cause=first.cause,
            failure=(first.failure or LOST)[:LONGEST_FAILURE],
            failed_at=first.ended_at or tries[tries.index(first) + 1].started_at,
            recovered_at=last.ended_at if last.state is AttemptState.FINISHED else None,
            reused=sum(partitions for partitions, _ in kept),
            saved_seconds=round(sum(seconds for _, seconds in kept), 1),
        )
