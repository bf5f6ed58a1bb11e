"""How many of each pipeline's newest intervals would come out differently now, for the page of all pipelines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.airflow.answering.server import server_ledger
from stagehold.airflow.overview.pipeline_rows import MOST_MARKS
from stagehold.airflow.pipeline_page.stale import Staleness, staleness
from stagehold.errors import StageholdError

if TYPE_CHECKING:
    from stagehold.airflow.overview.visible import VisiblePipeline


@dataclass(frozen=True)
class FirstStale:
    """The newest interval that is stale, and the first of its stages that is."""

    interval: str
    stage: str
    reason: str


@dataclass(frozen=True)
class PipelineStaleness:
    """Of so many intervals that were ``looked_at``; ``unplanned`` are those of which nothing could be said, and
    ``problem`` is why that is so of the whole pipeline.
    """

    name: str
    planned_at: datetime | None
    looked_at: int = 0
    stale: int = 0
    unplanned: int = 0
    first: FirstStale | None = None
    problem: str | None = None


@dataclass(frozen=True)
class StaleOverview:
    """``planned`` is False while the plan of any pipeline is being made for the first time."""

    planned: bool
    pipelines: tuple[PipelineStaleness, ...]


def stale_overview(visible: Iterable[VisiblePipeline]) -> StaleOverview:
    """Nothing of pipelines whose runs the reader may not see."""
    lines = tuple(_line(one) for one in visible if one.runs)
    return StaleOverview(all(line.planned_at or line.problem for line in lines), lines)


def _line(one: VisiblePipeline) -> PipelineStaleness:
    try:
        found = staleness(one.pipeline, server_ledger(one.settings), one.settings, MOST_MARKS)
    except StageholdError as error:  # of this pipeline alone
        return PipelineStaleness(one.name, None, problem=str(error))
    return PipelineStaleness(
        name=one.name,
        planned_at=found.planned_at,
        looked_at=len(found.looked_at),
        stale=len(found.stale),
        unplanned=len(found.unplanned),
        first=_first(found),
    )


def _first(found: Staleness) -> FirstStale | None:
    if not found.stale:
        return None
    interval, stage = found.stale[0].interval, found.stale[0].stages[0]
    return FirstStale(interval, stage.stage, stage.reason)
