"""Which pipelines are shown, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stagehold.airflow.overview.overview_responses import PipelineKind, PipelineOrder
from stagehold.model.standing import PipelineStanding


@dataclass(frozen=True)
class PipelineBrief:
    """The facts that decide whether a pipeline is shown, and in which place. ``kinds`` are all kinds that are known
    without a plan. ``began_at`` is when the newest of its runs began, ``needed_at`` likewise for intervals that need
    somebody.
    """

    name: str
    standing: PipelineStanding
    kinds: frozenset[PipelineKind]
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    began_at: datetime | None = None
    needed_at: datetime | None = None


@dataclass(frozen=True)
class Wanted:
    """The pipelines that a reader asks for, and which part of them. ``search`` is a part of a name; fields that are
    empty or None choose nothing out.
    """

    search: str = ""
    kind: PipelineKind | None = None
    tag: str = ""
    owner: str = ""
    order: PipelineOrder = PipelineOrder.STATE
    limit: int = 50
    offset: int = 0

    def _admits(self, brief: PipelineBrief) -> bool:
        """Whether it matches everything but the kind."""
        named = self.search.casefold() in brief.name.casefold()
        return named and self.tag in (*brief.tags, "") and self.owner in (*brief.owners, "")

    def among(self, briefs: Iterable[PipelineBrief]) -> Sequence[PipelineBrief]:
        """The pipelines of any kind that match everything else."""
        return [brief for brief in briefs if self._admits(brief)]

    def page(self, briefs: Sequence[PipelineBrief]) -> Sequence[PipelineBrief]:
        by_name = sorted(briefs, key=lambda brief: brief.name)
        return sorted(by_name, key=PLACES[self.order])[self.offset :][: self.limit]


def _by_state(brief: PipelineBrief) -> tuple[int, float]:
    return WORST_FIRST.index(brief.standing), _newest_first(brief.needed_at)


def _newest_first(moment: datetime | None) -> float:
    return -moment.timestamp() if moment else 0


WORST_FIRST = (
    PipelineStanding.FAILING,
    PipelineStanding.OVERDUE,
    PipelineStanding.RUNNING,
    PipelineStanding.NEVER_RUN,
    PipelineStanding.HIDDEN,
    PipelineStanding.CURRENT,
)
PLACES: Mapping[PipelineOrder, Callable[[PipelineBrief], Any]] = {
    PipelineOrder.STATE: _by_state,
    PipelineOrder.NAME: lambda brief: brief.name,
    PipelineOrder.NEWEST: lambda brief: _newest_first(brief.began_at),
}
