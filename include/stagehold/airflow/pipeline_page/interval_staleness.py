"""Which of a pipeline's intervals would come out differently now. A thread plans them, and the result is kept until the
ledger changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate

from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.airflow.pipeline_page.pipeline_facts import in_order, newest
from stagehold.airflow.pipeline_page.pipeline_responses import Staleness, Unplanned
from stagehold.ledger.ledger import Ledger
from stagehold.plan.backfill.backfill_plan import stale_intervals
from stagehold.run.backfill.backfill_planning import plan_stale
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

MOST_PARTITIONS = 50_000  # on record of the intervals that are planned together; the newest is always planned


# One plan at a time: pages that people wait for are made by the same process.
_PLANS = KeptPages[Staleness]("stale intervals", at_once=1)


def staleness(
    pipeline: Pipeline, ledger: Ledger, settings: Settings, most: int, before: str | None = None
) -> Staleness:
    """How stale so many of the newest intervals are, or of the newest before one of them.

    :raises UnknownName: nothing is on record of that one.
    """
    chosen = newest(in_order(ledger.intervals.known(pipeline.name)), before)[:most]
    name, seen = (ledger.name, pipeline.name, most, before), (pipeline, chosen, ledger.revision)
    kept = _PLANS.page(name, seen, lambda: _planned(chosen, pipeline, ledger, settings), lambda: True)
    return kept or Staleness(pipeline=pipeline.name, planned_at=None, looked_at=(), stale=(), unplanned=())


def _planned(intervals: Sequence[str], pipeline: Pipeline, ledger: Ledger, settings: Settings) -> Staleness:
    now, few = datetime.now(UTC), _few(intervals, pipeline, ledger)
    if not few:
        return Staleness(pipeline=pipeline.name, planned_at=now, looked_at=(), stale=(), unplanned=())
    plan = plan_stale(few[::-1], pipeline, ledger, settings)
    unplanned = [Unplanned(interval=one.interval, problem=one.problem) for one in plan.intervals if one.problem]
    return Staleness(
        pipeline=pipeline.name,
        planned_at=now,
        looked_at=few,
        stale=stale_intervals(plan)[::-1],
        unplanned=tuple(unplanned[::-1]),
    )


def _few(intervals: Sequence[str], pipeline: Pipeline, ledger: Ledger) -> tuple[str, ...]:
    """The newest intervals, as many as can be planned within seconds."""
    counts = ledger.pipelines.counts([(pipeline.name, one) for one in intervals])
    sizes = (sum(sum(states.values()) for states in counts.get((pipeline.name, one), {}).values()) for one in intervals)
    totals = zip(intervals, accumulate(sizes), strict=True)
    return tuple(one for place, (one, total) in enumerate(totals) if place == 0 or total <= MOST_PARTITIONS)
