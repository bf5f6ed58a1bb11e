"""Warns of later intervals that were computed from state which a stage keeps differently now."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.model.records import Cell, PartitionRecord, StatePart
from stagehold.plan.state.earlier_state import Cut, Earlier, earlier_of
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.planning.earlier_states import later_intervals
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Stage


def tell_later_intervals(task: RegionTask, stages: Sequence[str], workplace: Workplace) -> None:
    """Warn of these intervals. Their plans say that they run again, but people look at those plans only if they are
    told to.
    """
    ledger, pipeline, interval = workplace.ledger, task.pipeline, task.request.interval
    for stage in map(pipeline.stage, stages):
        later = later_intervals(pipeline, stage, interval, ledger) if stage.state else ()
        if not later:
            continue
        now = earlier_of(interval, ledger.partitions.newest(Cell(pipeline.name, stage.id, interval)))
        following = ledger.partitions.newest(Cell(pipeline.name, stage.id, later[0]))
        if now.gap is None and _went_on_with_other(now, following, stage):
            text = (
                f"{stage.name} keeps other state now than what {_span(later)} went on with. Run that again, in order: "
                f"`stagehold run {pipeline.name} --interval {later[0]}`"
            )
            workplace.warn(task.request.run_id, "stale", stage.name, text)


def _went_on_with_other(now: Earlier, following: Sequence[PartitionRecord], stage: Stage) -> bool:
    shapes = {shape.name: shape for shape in stage.states}
    return any(
        part.began != now.beginning(shapes[part.name], stage.states, record.partition, _cut(part))
        for record in following
        for part in record.kept
        if part.name in shapes and record.partition < part.partitions
    )


def _cut(part: StatePart) -> Cut:
    return Cut(part.partitions, part.max_parallelism)


def _span(intervals: Sequence[str]) -> str:
    return intervals[0] if len(intervals) == 1 else f"{intervals[0]} to {intervals[-1]}"
