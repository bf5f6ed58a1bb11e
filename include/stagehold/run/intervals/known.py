"""What is on record of each interval of a pipeline, as far as the ledger alone can tell it quickly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import StateFigures
from stagehold.model.records import PartitionState, Run
from stagehold.spec.pipeline import Pipeline, Stage


class IntervalState(StrEnum):
    """What there is of an interval."""

    COMPLETE = "complete"  # every result is consumable
    INCOMPLETE = "incomplete"  # some of it is there
    EMPTY = "empty"  # nothing is: it was deleted, or released, or nothing was ever published


@dataclass(frozen=True)
class StageTally:
    """Of so many ``recorded`` partitions of a stage."""

    consumable: int
    recorded: int


@dataclass(frozen=True)
class KnownStage:
    """``rows`` and ``seconds`` are those of all partitions on record, whether they can be read or were released."""

    stage: str
    consumable: int
    recorded: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class KnownInterval:
    """``run`` is the newest one; there is none in the ledger of what was taken over from elsewhere."""

    interval: str
    state: IntervalState
    stages: tuple[KnownStage, ...]
    recorded_at: datetime
    run: Run | None


def known_intervals(pipeline: Pipeline, ledger: Ledger, limit: int | None) -> tuple[KnownInterval, ...]:
    """Those that were worked on last first."""
    keys = ledger.partitions.intervals(pipeline.name, limit)
    figures, runs = ledger.partitions.figures(pipeline.name, keys), ledger.runs.newest_of_intervals(pipeline.name)
    newest = {run.interval: run for run in runs}
    return tuple(
        _known(pipeline, key, [one for one in figures if one.interval == key], newest.get(key)) for key in keys
    )


def _known(pipeline: Pipeline, interval: str, figures: Sequence[StateFigures], run: Run | None) -> KnownInterval:
    stages = tuple(_stages(pipeline, figures))
    state = interval_state(pipeline, {one.stage: StageTally(one.consumable, one.recorded) for one in stages})
    return KnownInterval(interval, state, stages, max(one.recorded_at for one in figures), run)


def _stages(pipeline: Pipeline, figures: Sequence[StateFigures]) -> Iterator[KnownStage]:
    for stage in pipeline.stages:
        own = [one for one in figures if one.stage == stage.id]
        if own:
            yield KnownStage(
                stage=stage.name,
                consumable=sum(one.partitions for one in own if one.state is PartitionState.CONSUMABLE),
                recorded=sum(one.partitions for one in own),
                rows=sum(one.rows for one in own),
                seconds=sum(one.seconds for one in own),
            )


def interval_state(pipeline: Pipeline, stages: Mapping[str, StageTally]) -> IntervalState:
    """:param stages: those that have records, by name."""
    if not any(one.consumable for one in stages.values()):
        return IntervalState.EMPTY
    whole = {name for name, one in stages.items() if one.consumable == one.recorded}
    results: set[str] = {stage.name for stage in pipeline.stages if _is_result(pipeline, stage)}
    return IntervalState.COMPLETE if results <= whole else IntervalState.INCOMPLETE


def _is_result(pipeline: Pipeline, stage: Stage) -> bool:
    return pipeline.is_result(stage) and stage.output.type.stored
