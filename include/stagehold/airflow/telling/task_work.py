"""What the attempts of a region's task did, by the ledger: what they computed and had judged, the facts in the event of
an asset, and when the whole region had ended well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from stagehold.gates.verdicts import Outcome, outcome_of, waived_in
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Attempt, AttemptState, Cell, GateResult, PartitionRecord
from stagehold.model.standing import Standing
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Stage

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StageWork:
    """The work on one stage. ``computed`` are the partitions that the run computed since some moment, ``judged`` the
    verdicts since then; for a task with a share, only those of its share. ``records`` are the newest of all the stage's
    partitions, and ``verdicts`` are the verdicts on those.
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


# The address of data that a stage reads or writes, with the verdicts of its gate.
LineageData = tuple[str, tuple[GateResult, ...]]


@dataclass(frozen=True)
class StageLineage:
    """One stage that was computed, with its inputs and its output."""

    work: StageWork
    interval: str
    inputs: tuple[LineageData, ...]
    output: LineageData


def work_since(since: datetime, task: RegionTask, ledger: Ledger) -> Iterator[StageWork]:
    """The work on each stored stage of the task's region."""
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
    """Whether the partition was computed, and not only judged again or taken over from a checkpoint."""
    return record.run_id == run_id and record.recorded_at >= since and not record.taken_over


def asset_facts(work: StageWork, standing: Standing, run_id: str, waivers: Sequence[Waiver]) -> dict[str, Any]:
    """The facts in an event of an asset: about the data that is there now, how much of it this run made, and what its
    gate said.

    :param standing: how the stage stands, of all partitions that the interval is to have.
    """
    cell, waived = work.records[0].cell, waived_in(work.records, waivers)
    outcomes = [(one, outcome_of(one, waived)) for one in work.verdicts]
    counts = Counter(outcome.value for _, outcome in outcomes)
    unmet: dict[tuple[str, str], list[int]] = {}
    for one, outcome in outcomes:
        if outcome is not Outcome.PASSED:
            unmet.setdefault((outcome.value, one.expectation), []).append(one.partition)
    return {
        "pipeline": cell.pipeline,
        "stage": work.stage.name,
        "interval": cell.interval,
        "run_id": run_id,
        "partitions": standing.total,
        "consumable": standing.consumable,
        "whole": standing.whole,
        "computed": sum(one.run_id == run_id and not one.taken_over for one in work.records),
        "rows": sum(one.rows for one in work.records),
        "gate": work.stage.gate,
        "verdicts": {outcome.value: counts[outcome.value] for outcome in Outcome} if work.stage.gate else {},
        "not_met": [
            {"verdict": verdict, "expectation": expectation, "partitions": str(PartitionSet(some))}
            for (verdict, expectation), some in sorted(unmet.items())
        ],
    }


def complete_before(share: str | None, attempts: Sequence[Attempt], shares: Collection[str | None]) -> datetime | None:
    """When the region was complete before, in the same run, if the newest attempt of this share completed it: it ended
    last of all attempts that had started by then. None if it did not complete it.

    :param attempts: attempts of one region in one run.
    :param shares: all shares of the region; None alone if it is not split.
    """
    ends = sorted((one for one in attempts if _finished(one) and one.share in shares), key=_end)
    complete = [one for one in ends if _is_complete(one, attempts, shares)]
    own = max((one for one in attempts if one.share == share), key=lambda one: one.started_at, default=None)
    if own is None or own not in complete:
        return None
    earlier = [one.ended_at for one in complete[: complete.index(own)] if one.ended_at is not None]
    return max(earlier, default=BEFORE_ALL)


def _is_complete(end: Attempt, attempts: Sequence[Attempt], shares: Collection[str | None]) -> bool:
    """Whether the newest attempt of every share that had started had ended well."""
    for share in shares:
        began = [one for one in attempts if one.share == share and one.started_at <= _end(end)[0]]
        newest = max(began, key=lambda one: one.started_at, default=None)
        if newest is None or not _finished(newest) or _end(newest) > _end(end):
            return False
    return True


def _finished(attempt: Attempt) -> bool:
    return attempt.state is AttemptState.FINISHED and attempt.ended_at is not None


def _end(attempt: Attempt) -> tuple[datetime, str]:
    """A key that tells the last attempt: two attempts may end at the same moment."""
    return attempt.ended_at or BEFORE_ALL, attempt.attempt_id
