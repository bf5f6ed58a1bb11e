"""Which intervals are stale: a plan of a backfill, cut down to what would come out differently now."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.model.standing import CellStanding
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.plan.backfill.cells import BackfillCell


@dataclass(frozen=True)
class StaleStage:
    """So many ``partitions`` are there and would be computed or judged again; ``reason`` is that of most of them."""

    stage: str
    partitions: int
    reason: str


@dataclass(frozen=True)
class StaleInterval:
    """``stages`` are in the order of the pipeline, so the first one is where it begins."""

    interval: str
    stages: tuple[StaleStage, ...]


def stale_intervals(plan: BackfillPlan) -> tuple[StaleInterval, ...]:
    """Those of which a stage stands as stale. One that failed or misses something is not told, though it may be stale
    as well.
    """
    found = (StaleInterval(one.interval, tuple(map(_stage, filter(_is_stale, one.cells)))) for one in plan.intervals)
    return tuple(one for one in found if one.stages)


def _is_stale(cell: BackfillCell) -> bool:
    return cell.state is CellStanding.STALE


def _stage(cell: BackfillCell) -> StaleStage:
    again = [reason for reason in cell.reasons if reason.runs or reason.judges]
    most = max(again, key=lambda reason: reason.count, default=None)
    return StaleStage(cell.stage, sum(reason.count for reason in again), most.text if most else "")
