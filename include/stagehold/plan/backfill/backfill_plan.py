"""What a backfill would run: a grid of intervals and stages, with a token that changes as soon as other cells would
run. Cut down to what would come out differently now, the same grid says which intervals are stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.backfill import BackfillChoice, Only, OrderedInterval, PlannedCell, WorkOrder
from stagehold.model.standing import CellStanding
from stagehold.plan.backfill.cells import BackfillCell
from stagehold.plan.backfill.token import token_of
from stagehold.plan.resume.planner import descendants
from stagehold.plan.resume.released_outputs import released_text
from stagehold.spec.pipeline import Pipeline


@dataclass(frozen=True)
class IntervalPlan:
    """``problem`` is why nothing of the interval can be planned, so that it is left out."""

    interval: str
    order: WorkOrder
    cells: tuple[BackfillCell, ...] = ()
    saved_seconds: float = 0.0
    problem: str | None = None

    @property
    def blocked(self) -> tuple[str, ...]:
        """The stages of which something is refused, or that wait for such a stage."""
        return tuple(cell.stage for cell in self.cells if cell.state is CellStanding.BLOCKED)

    @property
    def runs(self) -> int:
        return sum(cell.runs for cell in self.cells)

    @property
    def reuses(self) -> int:
        return sum(cell.reuses for cell in self.cells)


@dataclass(frozen=True)
class BackfillPlan:
    """``unknown`` are stages whose seconds nobody knows; they are missing in all sums. ``refusal`` is why none of it
    can be started as it is, ``remark`` what is to be said of what is asked for.
    """

    pipeline: str
    choice: BackfillChoice
    intervals: tuple[IntervalPlan, ...]
    unknown: tuple[str, ...] = ()
    refusal: str | None = None
    remark: str | None = None

    @property
    def runs(self) -> int:
        return sum(interval_plan.runs for interval_plan in self.intervals)

    @property
    def reuses(self) -> int:
        return sum(interval_plan.reuses for interval_plan in self.intervals)

    @property
    def seconds(self) -> float:
        return sum(cell.seconds for interval_plan in self.intervals for cell in interval_plan.cells)

    @property
    def saved_seconds(self) -> float:
        return sum(interval_plan.saved_seconds for interval_plan in self.intervals)

    @property
    def released(self) -> str | None:
        """What a person is told of outputs that are computed only since they were released."""
        needed = {
            interval_plan.interval: [cell.released for cell in interval_plan.cells if cell.released]
            for interval_plan in self.intervals
        }
        return released_text(needed, self.choice.restore_from_stage)

    @property
    def is_done(self) -> bool:
        """Whether all intervals are known to need nothing."""
        return not self.runs and not any(
            interval_plan.problem or interval_plan.blocked for interval_plan in self.intervals
        )

    @property
    def running(self) -> tuple[IntervalPlan, ...]:
        """The intervals of which anything runs."""
        return tuple(interval_plan for interval_plan in self.intervals if interval_plan.runs)

    @property
    def planned(self) -> tuple[PlannedCell, ...]:
        """The cells that run."""
        return tuple(self._planned())

    def _planned(self) -> Iterator[PlannedCell]:
        for interval_plan in self.intervals:
            yield from (
                PlannedCell(interval_plan.interval, cell.stage, cell.ranges)
                for cell in interval_plan.cells
                if cell.runs
            )

    @property
    def token(self) -> str:
        return token_of(self.planned)

    @property
    def ordered(self) -> tuple[OrderedInterval, ...]:
        """What the run of each interval is told that does anything."""
        return tuple(OrderedInterval(interval_plan.interval, interval_plan.order) for interval_plan in self.running)


@dataclass(frozen=True)
class StaleStage:
    """A stage of which so many ``partitions`` are there and would be computed or judged again; ``reason`` is the reason
    of most of them.
    """

    stage: str
    partitions: int
    reason: str


@dataclass(frozen=True)
class StaleInterval:
    """``stages`` are in the order of the pipeline, so the first one is where it begins."""

    interval: str
    stages: tuple[StaleStage, ...]


def stale_intervals(plan: BackfillPlan) -> tuple[StaleInterval, ...]:
    """Intervals in which a stage stands as stale. An interval that failed or misses something is left out, though it
    may be stale as well.
    """
    found = (
        StaleInterval(interval_plan.interval, tuple(map(_stage, filter(_is_stale, interval_plan.cells))))
        for interval_plan in plan.intervals
    )
    return tuple(interval for interval in found if interval.stages)


def _is_stale(cell: BackfillCell) -> bool:
    return cell.state is CellStanding.STALE


def _stage(cell: BackfillCell) -> StaleStage:
    again = [reason for reason in cell.reasons if reason.runs or reason.judges]
    most = max(again, key=lambda reason: reason.count, default=None)
    return StaleStage(cell.stage, sum(reason.count for reason in again), most.text if most else "")


def check_choice(choice: BackfillChoice, pipeline: Pipeline) -> None:
    """
    :raises UnknownName: the pipeline has no stage of that name.
    :raises InvalidArgument: two things are asked for that exclude each other.
    """
    known = tuple(stage.name for stage in pipeline.stages)
    for name in (*choice.stages, *filter(None, (choice.restore_from_stage,))):
        if name not in known:
            raise UnknownName(f"stage of {pipeline.name}", name, known)
    if choice.restore_from_stage and choice.only in (Only.MISSING, Only.STALE):
        allowed = f"{Only.FAILED} or {Only.ALL} together with --restore-from-stage, which computes again what is there"
        raise InvalidArgument("--only", str(choice.only), allowed)


def order_of(choice: BackfillChoice, pipeline: Pipeline, *, has_failed: bool) -> WorkOrder:
    """
    :param has_failed: the interval's newest run failed, or a gate blocks something of it.
    """
    chosen = _chosen(choice, pipeline)
    if choice.only is Only.FAILED and not has_failed:
        return WorkOrder(())
    if choice.restore_from_stage or choice.only is Only.ALL:
        return WorkOrder(chosen, anew=chosen)
    return WorkOrder(chosen, only_recorded=choice.only is Only.STALE, as_recorded=choice.only is Only.MISSING)


def _chosen(choice: BackfillChoice, pipeline: Pipeline) -> tuple[str, ...]:
    """The chosen stages, in the order of the pipeline."""
    follows = descendants(pipeline, choice.restore_from_stage) if choice.restore_from_stage else None
    return tuple(
        stage.name
        for stage in pipeline.stages
        if (not choice.stages or stage.name in choice.stages) and (follows is None or stage.name in follows)
    )
