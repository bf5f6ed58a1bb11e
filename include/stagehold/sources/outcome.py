"""What became of what intervals took of an incremental source: whether it is published, and whether all of it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, RunState
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Stage


def published_of(pipeline: str, stages: Sequence[Stage], interval: str, ledger: Ledger) -> tuple[str, ...]:
    """Partitions of ``stages`` that were published, in words, also if a later try was refused by its gate; none if the
    interval was deleted, which takes the rows of all of them out.
    """
    cells = {stage.name: Cell(pipeline, stage.id, interval) for stage in stages}
    newest = [one for cell in cells.values() for one in ledger.partitions.newest(cell)]
    if all(one.state is PartitionState.RELEASED for one in newest):
        return ()
    made = {
        f"{name}[{record.partition}] (version {record.version})": None
        for name, cell in cells.items()
        for record in ledger.partitions.history(cell)
        if record.version is not None
    }
    return tuple(made)


def unfinished(pipeline: str, stored: Sequence[Stage], intervals: Collection[str], ledger: Ledger) -> tuple[str, ...]:
    """Those of ``intervals`` that have not made all partitions of the ``stored`` stages, in order."""
    passed, others = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in ledger.partitions.figures(pipeline, intervals):
        (passed if one.state.counts_as_done else others)[one.interval, one.stage] += one.partitions
    runs = ledger.runs.newest_of_intervals(pipeline, intervals)
    finished = {run.interval for run in runs if run.state is RunState.FINISHED}

    def has_all(interval: str, stage: Stage) -> bool:
        """What it is cut into now may be another number than then; a run that finished had them all."""
        made, lacking = passed[interval, stage.id], others[interval, stage.id]
        return made > 0 and not lacking and (interval in finished or made >= _wanted(stage, pipeline, interval, ledger))

    return tuple(sorted(one for one in intervals if not all(has_all(one, stage) for stage in stored)))


def _wanted(stage: Stage, pipeline: str, interval: str, ledger: Ledger) -> int:
    decided = ledger.partition_counts.decided(pipeline, interval) if stage.auto_partitions else {}
    return decided[stage.id].partitions if stage.id in decided else stage.partitions
