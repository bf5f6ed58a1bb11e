"""A backfill as it was asked for, and what was shown to whoever asked: kept until all of its runs have ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.model.work_order import WorkOrder


class Only(StrEnum):
    """What of an interval a backfill computes, if not all that a run would."""

    MISSING = "missing"  # what is not there; what is counts as it is recorded
    FAILED = "failed"  # what a run would, of intervals whose newest run failed or that a gate blocks
    STALE = "stale"  # what is there and would be made from something else now
    ALL = "all"  # everything once more, even if nothing changed


@dataclass(frozen=True)
class BackfillChoice:
    """From the ``first`` interval to the ``last``, in all ``stages`` if none are named. ``restore_from_stage`` has that
    stage and all that read it computed again.
    """

    first: str
    last: str
    stages: tuple[str, ...] = ()
    only: Only | None = None
    restore_from_stage: str | None = None


@dataclass(frozen=True)
class PlannedCell:
    """The partitions of a stage that run for an interval, as ranges: first and last, both included."""

    interval: str
    stage: str
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class OrderedInterval:
    """What the run of one interval is told to do."""

    interval: str
    order: WorkOrder


@dataclass(frozen=True)
class Backfill:
    """A backfill that was started: what each run of its intervals does, and the cells that were planned then."""

    backfill_id: str
    pipeline: str
    asked_by: str
    requested_at: datetime
    choice: BackfillChoice
    intervals: tuple[OrderedInterval, ...]
    cells: tuple[PlannedCell, ...]

    def order(self, interval: str) -> WorkOrder:
        """What a run of the interval does: nothing for one that nobody chose, as Airflow runs whole ranges of dates."""
        found = (one.order for one in self.intervals if one.interval == interval)
        return next(found, WorkOrder((), backfill=self.backfill_id))
