"""Which pipelines are shown, and in which order: one set of rows, asked many questions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stagehold.airflow.overview.overview_responses import IntervalMark, PipelineKind, PipelineOrder, PipelineRow
from stagehold.airflow.overview.pipeline_choice import Wanted, kinds_of
from stagehold.model.standing import Need, PipelineStanding, RunWord


def mark(day: int, need: Need | None = None, *, waived: bool = False) -> IntervalMark:
    return IntervalMark(
        interval=f"2026-11-{day:02}",
        word=RunWord.SUCCESS,
        run_id=f"sales/{day}",
        started_at=datetime(2026, 11, day, tzinfo=UTC),
        ended_at=None,
        need=need,
        reason=None,
        step=None,
        waived=waived,
    )


def row(name: str, standing: PipelineStanding, *marks: IntervalMark, active: int = 0, tag: str = "") -> PipelineRow:
    return PipelineRow(
        name=name,
        tags=(tag,) if tag else (),
        owners=("ann",) if tag else ("bob",),
        schedule=None,
        paused=False,
        standing=standing,
        active=active,
        due=None,
        newest=None,
        marks=marks,
    )


ROWS = (
    row("whole", PipelineStanding.CURRENT, mark(9, waived=True), tag="money"),
    row("failed_before", PipelineStanding.FAILING, mark(3, Need.FAILED), mark(8), tag="money"),
    row("blocked_today", PipelineStanding.FAILING, mark(7, Need.BLOCKED), active=1),
    row("never", PipelineStanding.NEVER_RUN),
    row("at_work", PipelineStanding.RUNNING, mark(10), active=2),
)


def names(wanted: Wanted) -> list[str]:
    rows = [one for one in wanted.among(ROWS) if wanted.kind is None or wanted.kind in kinds_of(one)]
    return [one.name for one in wanted.page(rows)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(), ["blocked_today", "failed_before", "at_work", "never", "whole"]),
        (Wanted(order=PipelineOrder.NAME), ["at_work", "blocked_today", "failed_before", "never", "whole"]),
        (Wanted(order=PipelineOrder.NEWEST), ["at_work", "whole", "failed_before", "blocked_today", "never"]),
        (Wanted(limit=2, offset=1), ["failed_before", "at_work"]),
        (Wanted(offset=5), []),
        (Wanted(search="ED_"), ["blocked_today", "failed_before"]),
        (Wanted(kind=PipelineKind.FAILING), ["blocked_today", "failed_before"]),
        (Wanted(kind=PipelineKind.BLOCKED), ["blocked_today"]),
        (Wanted(kind=PipelineKind.WAIVED), ["whole"]),
        (Wanted(kind=PipelineKind.RUNNING), ["blocked_today", "at_work"]),
        (Wanted(kind=PipelineKind.NEVER_RUN), ["never"]),
        (Wanted(kind=PipelineKind.CURRENT), ["whole"]),
        (Wanted(tag="money"), ["failed_before", "whole"]),
        (Wanted(owner="bob", kind=PipelineKind.RUNNING), ["blocked_today", "at_work"]),
        (Wanted(tag="money", owner="bob"), []),
    ],
)
def test_what_is_asked_for_is_shown_in_order(wanted, expected):
    assert names(wanted) == expected
