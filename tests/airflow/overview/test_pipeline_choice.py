"""Which pipelines are shown, and in which order: one set of pipelines, asked many questions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stagehold.airflow.overview.overview_responses import PipelineKind, PipelineOrder
from stagehold.airflow.overview.pipeline_choice import PipelineBrief, Wanted
from stagehold.model.standing import PipelineStanding


def brief(
    name: str,
    standing: PipelineStanding,
    *kinds: PipelineKind,
    began: int | None = None,
    needed: int | None = None,
    tag: str = "",
) -> PipelineBrief:
    return PipelineBrief(
        name=name,
        standing=standing,
        kinds=frozenset({PipelineKind(standing.value), *kinds}),
        tags=(tag,) if tag else (),
        owners=("ann",) if tag else ("bob",),
        began_at=day(began),
        needed_at=day(needed),
    )


def day(number: int | None) -> datetime | None:
    return number and datetime(2026, 11, number, tzinfo=UTC)


BRIEFS = (
    brief("whole", PipelineStanding.CURRENT, PipelineKind.WAIVED, began=9, tag="money"),
    brief("failed_before", PipelineStanding.FAILING, began=8, needed=3, tag="money"),
    brief("blocked_today", PipelineStanding.FAILING, PipelineKind.BLOCKED, PipelineKind.RUNNING, began=7, needed=7),
    brief("never", PipelineStanding.NEVER_RUN),
    brief("at_work", PipelineStanding.RUNNING, began=10),
)


def names(wanted: Wanted) -> list[str]:
    found = [one for one in wanted.among(BRIEFS) if wanted.kind is None or wanted.kind in one.kinds]
    return [one.name for one in wanted.page(found)]


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
