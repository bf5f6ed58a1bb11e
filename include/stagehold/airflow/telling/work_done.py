"""What a try of a region's task did, by what the ledger says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult, PartitionRecord
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Stage


@dataclass(frozen=True)
class StageWork:
    """``computed`` are the partitions that the run computed since some moment, ``judged`` what gates said since then;
    both of a task's share only, if it has one. ``records`` are the newest of all the stage's partitions, and
    ``verdicts`` what gates said of those.
    """

    stage: Stage
    computed: tuple[PartitionRecord, ...]
    reused: tuple[PartitionRecord, ...]
    judged: tuple[GateResult, ...]
    records: tuple[PartitionRecord, ...]
    verdicts: tuple[GateResult, ...]

    @property
    def waves(self) -> int:
        return len({(one.attempt_id, one.wave) for one in self.computed})


def work_since(since: datetime, task: RegionTask, ledger: Ledger) -> Iterator[StageWork]:
    """For each stored stage of the task's region."""
    for stage in map(task.pipeline.stage, task.region.stages):
        if not stage.output.may_have_table:
            continue
        cell = Cell(task.pipeline.name, stage.id, task.request.interval)
        records = ledger.partitions.newest(cell)
        mine = [one for one in records if _is_of(task, one.partition)]
        computed = tuple(one for one in mine if _is_computed(one, since, task.request.run_id))
        reused = tuple(one for one in mine if one.state.counts_as_done and one not in computed)
        verdicts = ledger.gates.verdicts(cell) if stage.gate else ()
        judged = tuple(one for one in verdicts if one.recorded_at >= since and _is_of(task, one.partition))
        yield StageWork(stage, computed, reused, judged, records, verdicts)


def _is_of(task: RegionTask, partition: int) -> bool:
    return task.share is None or partition in task.share


def _is_computed(record: PartitionRecord, since: datetime, run_id: str) -> bool:
    """Judged again, or taken over from a checkpoint, is not computed."""
    return record.run_id == run_id and record.recorded_at >= since and not record.taken_over
