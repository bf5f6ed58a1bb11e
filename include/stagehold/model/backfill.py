"""A backfill as it was asked for, and what was shown to whoever asked: kept until all of its runs have ended; and what
each of these runs is told to do beyond what a run does by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Only(StrEnum):
    """What of an interval a backfill computes, if not all that a run would."""

    MISSING = "missing"  # what is not there; what is counts as it is recorded
    FAILED = "failed"  # what a run would, of intervals whose newest run failed or that a gate blocks
    STALE = "stale"  # what is there and would be made from something else now
    ALL = "all"  # everything once more, even if nothing changed


@dataclass(frozen=True)
class BackfillChoice:
    """What to backfill: the ``first`` interval to the ``last``, in these ``stages``, or in all if none are named.
    ``restore_from_stage`` has that stage and all that read it computed again.
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
        found = (ordered.order for ordered in self.intervals if ordered.interval == interval)
        return next(found, WorkOrder((), backfill=self.backfill_id))


@dataclass(frozen=True)
class WorkOrder:
    """``stages``, by name, are those that the run works in; the others are left as they are, unless something that runs
    needs what is not there. ``anew`` are those of them that are computed again once, although nothing changed. With
    ``only_recorded`` nothing is computed that is not on record, unless something that runs needs it; with
    ``as_recorded`` nothing is computed that is. ``backfill`` is the id of the backfill whose order it is, None if
    somebody asked for this run alone.
    """

    stages: tuple[str, ...]
    anew: tuple[str, ...] = ()
    only_recorded: bool = False
    as_recorded: bool = False
    backfill: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the run is to do nothing."""
        return not self.stages
