"""Says which later intervals were computed from state that a stage keeps otherwise now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.model.records import Cell, PartitionRecord
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.attempt.task import RegionTask
from stagehold.run.planning.earlier import later_intervals
from stagehold.run.workplace import Workplace


def tell_later_intervals(task: RegionTask, computed: Sequence[str], before: ResumePlan, workplace: Workplace) -> None:
    """Their plans say by themselves that they run again; but nobody looks at those unless told.

    :param before: the plan of the attempt, with the records that it replaced.
    """
    ledger, pipeline, interval = workplace.ledger, task.pipeline, task.request.interval
    for stage in map(pipeline.stage, computed):
        later = later_intervals(pipeline, stage, interval, ledger) if stage.state else ()
        now = ledger.partitions.newest(Cell(pipeline.name, stage.id, interval)) if later else ()
        if later and _kept(now) != _kept([one.record for one in before.of(stage.name) if one.record]):
            text = (
                f"{stage.name} keeps other state now than what {_span(later)} went on with. Run that again, in order: "
                f"`stagehold run {pipeline.name} --interval {later[0]}`"
            )
            workplace.warn(task.request.run_id, "stale", stage.name, text)


def _kept(records: Sequence[PartitionRecord]) -> Mapping[tuple[int, str], str]:
    return {(record.partition, part.name): part.fingerprint for record in records for part in record.kept}


def _span(intervals: Sequence[str]) -> str:
    return intervals[0] if len(intervals) == 1 else f"{intervals[0]} and {len(intervals) - 1} later intervals"
