"""Which pipelines are shown, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagehold.airflow.overview.overview_responses import PipelineKind, PipelineOrder, PipelineRow
from stagehold.model.standing import Need, PipelineStanding


@dataclass(frozen=True)
class Wanted:
    """Which pipelines somebody asks for, and which part of them. ``search`` is a part of a name; of what is empty or
    None all are meant.
    """

    search: str = ""
    kind: PipelineKind | None = None
    tag: str = ""
    owner: str = ""
    order: PipelineOrder = PipelineOrder.STATE
    limit: int = 50
    offset: int = 0

    def _admits(self, row: PipelineRow) -> bool:
        """Whatever its kind."""
        named = self.search.casefold() in row.name.casefold()
        return named and self.tag in (*row.tags, "") and self.owner in (*row.owners, "")

    def among(self, rows: Iterable[PipelineRow]) -> Sequence[PipelineRow]:
        """Those of any kind."""
        return [row for row in rows if self._admits(row)]

    def page(self, rows: Sequence[PipelineRow]) -> Sequence[PipelineRow]:
        return sorted(sorted(rows, key=lambda row: row.name), key=PLACES[self.order])[self.offset :][: self.limit]


def _by_state(row: PipelineRow) -> tuple[int, float]:
    needs = [one.started_at.timestamp() for one in row.marks if one.need]
    return WORST_FIRST.index(row.standing), -max(needs, default=0)


def _by_newest(row: PipelineRow) -> float:
    return -max((one.started_at.timestamp() for one in row.marks), default=0)


WORST_FIRST = (
    PipelineStanding.FAILING,
    PipelineStanding.OVERDUE,
    PipelineStanding.RUNNING,
    PipelineStanding.NEVER_RUN,
    PipelineStanding.HIDDEN,
    PipelineStanding.CURRENT,
)
PLACES: Mapping[PipelineOrder, Callable[[PipelineRow], Any]] = {
    PipelineOrder.STATE: _by_state,
    PipelineOrder.NAME: lambda row: row.name,
    PipelineOrder.NEWEST: _by_newest,
}


def kinds_of(row: PipelineRow) -> set[PipelineKind]:
    """All that is known of it without a plan."""
    true = {
        PipelineKind(row.standing.value): True,
        PipelineKind.RUNNING: row.active > 0,
        PipelineKind.BLOCKED: any(one.need is Need.BLOCKED for one in row.marks),
        PipelineKind.WAIVED: any(one.waived for one in row.marks),
        PipelineKind.OVERDUE: row.due is not None,
    }
    return {kind for kind, is_so in true.items() if is_so}
