"""A planned backfill as the web API and `--json` tell it. Others read these names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stagehold.plan.backfill.backfill_plan import BackfillPlan, IntervalPlan
from stagehold.plan.backfill.cells import BackfillCell, CellReason
from stagehold.spec.pipeline import Pipeline


@dataclass(frozen=True)
class ShownCell:
    """``state`` is one of good, missing, failed, stale, blocked. Of the partitions that run, so many were ``released``
    and run only since something reads them.
    """

    stage: str
    state: str
    partitions: int
    runs: int
    reuses: int
    seconds: float
    reasons: tuple[CellReason, ...]
    released: int = 0

    @staticmethod
    def of(cell: BackfillCell) -> ShownCell:
        return ShownCell(
            stage=cell.stage,
            state=cell.state,
            partitions=cell.partitions,
            runs=cell.runs,
            reuses=cell.reuses,
            seconds=round(cell.seconds, 3),
            reasons=cell.reasons,
            released=len(cell.released.partitions) if cell.released else 0,
        )


@dataclass(frozen=True)
class ShownInterval:
    """``run_id`` is its run in Airflow, if it has one; ``problem`` why it cannot be planned and is left out."""

    interval: str
    run_id: str | None
    problem: str | None
    cells: tuple[ShownCell, ...]

    @staticmethod
    def of(interval_plan: IntervalPlan, run_id: str | None) -> ShownInterval:
        return ShownInterval(
            interval_plan.interval, run_id, interval_plan.problem, tuple(map(ShownCell.of, interval_plan.cells))
        )


@dataclass(frozen=True)
class ShownBackfill:
    """``unknown`` are stages of which nobody knows how long they take; ``refusal`` is why nothing can be started,
    ``along`` what Airflow starts besides, ``released`` what is computed only since it was released,
    ``remark`` what else is to be said of what is asked for.
    """

    pipeline: str
    first: str
    last: str
    only: str | None
    stages: tuple[str, ...]
    restore_from_stage: str | None
    token: str
    intervals: tuple[ShownInterval, ...]
    runs: int
    reuses: int
    seconds: float
    saved_seconds: float
    unknown: tuple[str, ...] = field(default=())
    refusal: str | None = None
    along: str | None = None
    released: str | None = None
    remark: str | None = None

    @staticmethod
    def of(
        plan: BackfillPlan, pipeline: Pipeline, run_ids: Mapping[str, str], along: str | None = None
    ) -> ShownBackfill:
        """
        :param run_ids: of runs in Airflow, by interval.
        """
        choice = plan.choice
        return ShownBackfill(
            pipeline=plan.pipeline,
            first=choice.first,
            last=choice.last,
            only=choice.only,
            stages=choice.stages or tuple(stage.name for stage in pipeline.stages),
            restore_from_stage=choice.restore_from_stage,
            token=plan.token,
            intervals=tuple(
                ShownInterval.of(interval_plan, run_ids.get(interval_plan.interval)) for interval_plan in plan.intervals
            ),
            runs=plan.runs,
            reuses=plan.reuses,
            seconds=round(plan.seconds, 3),
            saved_seconds=round(plan.saved_seconds, 3),
            unknown=plan.unknown,
            refusal=plan.refusal,
            along=along,
            released=plan.released,
            remark=plan.remark,
        )
