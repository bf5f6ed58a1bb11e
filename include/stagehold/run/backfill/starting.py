"""Begins a backfill: what each of its runs is told is kept, so that a retry, a clear or a resume does the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from stagehold.errors import BackfillChanged, BackfillRefused
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill, OrderedInterval
from stagehold.model.records import Restore
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.plan.backfill.token import difference
from stagehold.run.backfill.planning import restore_ordered

DIGITS = 10  # of an id


def begin_backfill(plan: BackfillPlan, token: str | None, asked_by: str, ledger: Ledger) -> Backfill:
    """Keep what was planned.

    :param token: of the plan that whoever asks was shown; None if that is this one.
    :raises BackfillChanged: something else would run than was shown.
    :raises BackfillRefused: nothing can be run.
    """
    changed = difference(token, plan.planned) if token else None
    if changed:
        raise BackfillChanged(plan.pipeline, changed)
    if plan.refusal:
        raise BackfillRefused(plan.pipeline, plan.refusal)
    backfill_id = uuid4().hex[:DIGITS]
    backfill = Backfill(
        backfill_id=backfill_id,
        pipeline=plan.pipeline,
        asked_by=asked_by,
        requested_at=datetime.now(UTC),
        choice=plan.choice,
        intervals=tuple(
            OrderedInterval(one.interval, replace(one.order, backfill=backfill_id)) for one in plan.ordered
        ),
        cells=plan.planned,
    )
    ledger.backfills.record(backfill)
    return backfill


def restore_of(backfill: Backfill, interval: str, run_id: str) -> Restore:
    """The request of a run of it, the same one each time."""
    asked = restore_ordered(run_id, backfill.order(interval), f"backfill {backfill.backfill_id}")
    return replace(asked, requested_at=backfill.requested_at)
