"""How long stages took, and how much they made, from interval to interval. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stagehold.ledger.partitions import StateFigures
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Pipeline, Stage


@dataclass(frozen=True)
class StageHistory:
    """One value for each interval; None where nothing is on record. ``seconds`` is the work of all its partitions, in
    whatever run it was done; ``bytes`` is unknown of what was released.
    """

    stage: str
    seconds: tuple[float | None, ...]
    rows: tuple[int | None, ...]
    bytes: tuple[int | None, ...]


@dataclass(frozen=True)
class PipelineHistory:
    """Oldest interval first."""

    intervals: tuple[str, ...]
    stages: tuple[StageHistory, ...]


Group = Sequence[StateFigures]
Value = TypeVar("Value", bound=float)


def pipeline_history(pipeline: Pipeline, intervals: Sequence[str], figures: Sequence[StateFigures]) -> PipelineHistory:
    together: dict[tuple[str, str], list[StateFigures]] = {}
    for one in figures:
        together.setdefault((one.stage, one.interval), []).append(one)
    stored = (stage for stage in pipeline.stages if stage.output.stored)
    return PipelineHistory(
        tuple(intervals),
        tuple(_stage(stage, [together.get((stage.id, key), ()) for key in intervals]) for stage in stored),
    )


def _stage(stage: Stage, groups: Sequence[Group]) -> StageHistory:
    return StageHistory(
        stage.name,
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
