"""The state that the stages of an interval go on with: what they kept in the interval before, in the order of the
schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from stagehold.chronicle.chronicle import facts_told, records_told
from stagehold.chronicle.missing_facts import newest_records
from stagehold.lake.available import missing_files
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.interval_key import following_key, interval_key, moment_of, previous_key
from stagehold.model.records import Cell, PartitionRecord, RunState
from stagehold.plan.state.earlier_state import Earlier, Gap, earlier_of
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from stagehold.run.planning.snapshots import BeginsWith


class KnownIntervals:
    """Records of other intervals: in the ledger, and for a sandbox also in ``production``'s lake. Records of stages
    that keep no state are read only ``with_stateless``, since they are far more.
    """

    def __init__(self, ledger: Ledger, production: str | None = None, with_stateless: bool = False) -> None:
        self.ledger, self.production, self.with_stateless = ledger, production, with_stateless

    @staticmethod
    def of(ledger: Ledger, settings: Settings, *, with_stateless: bool = False) -> KnownIntervals:
        return KnownIntervals(ledger, settings.production.lake_uri if settings.sandbox else None, with_stateless)

    def newest(self, cell: Cell) -> tuple[PartitionRecord, ...]:
        """The newest record of each partition; those of production where the sandbox has none."""
        own = self.ledger.partitions.newest(cell)
        if own or self.production is None:
            return own
        told = newest_records(record for record in self._told if record.cell == cell)
        return tuple(sorted(told.values(), key=lambda record: record.partition))

    def intervals(self, pipeline: str, stage_id: str) -> frozenset[str]:
        """The intervals in which the stage has records."""
        told = (
            record.cell for record in self._told if (record.cell.pipeline, record.cell.stage) == (pipeline, stage_id)
        )
        return frozenset((*self.ledger.partitions.intervals_of(pipeline, stage_id), *(cell.interval for cell in told)))

    def unfinished(self, pipeline: str) -> frozenset[str]:
        """The intervals that were asked for, and whose newest run has not finished."""
        runs = self.ledger.runs.newest_of_intervals(pipeline)
        return frozenset(run.interval for run in runs if run.state is not RunState.FINISHED)

    @cached_property
    def _told(self) -> tuple[PartitionRecord, ...]:
        if self.production is None:
            return ()
        return tuple(
            records_told(self.production) if self.with_stateless else facts_told(self.production, PartitionRecord)
        )


def earlier_states(
    pipeline: Pipeline, interval: str, known: KnownIntervals, begins_with: BeginsWith | None
) -> Mapping[str, Earlier]:
    """What stages that keep state begin with, by their names. A run that begins with a checkpoint of another interval
    goes on with the state in it; so intervals between the two may be left out.

    :raises InvalidInterval: a stage keeps state, and the schedule has no such interval.
    """
    return {
        stage.name: _earlier(stage, pipeline, interval, known, begins_with) for stage in pipeline.stages if stage.states
    }


def later_intervals(pipeline: Pipeline, stage: Stage, interval: str, ledger: Ledger) -> tuple[str, ...]:
    """Later intervals in which the stage has records, in order, without those before which its state begins anew."""
    known = _in_order(ledger.partitions.intervals_of(pipeline.name, stage.id), pipeline.schedule)
    own, schedule = moment_of(interval, pipeline.schedule), _schedule_of(pipeline)
    begins = _beginning(stage, schedule)
    return tuple(
        key
        for moment, key in known
        if own and moment > own and not _begins_anew_between(interval, key, begins, schedule)
    )


def earlier_intervals(pipeline: Pipeline, stage: Stage, interval: str, known: KnownIntervals) -> tuple[str, ...]:
    """Earlier intervals in which the stage has records, the newest first; none if the interval has no place in time."""
    return _before(interval, known.intervals(pipeline.name, stage.id), pipeline.schedule)


def _earlier(
    stage: Stage, pipeline: Pipeline, interval: str, known: KnownIntervals, begins_with: BeginsWith | None
) -> Earlier:
    if begins_with is not None and not begins_with.is_of_this_interval:
        records = begins_with.kept(stage)
        return earlier_of(begins_with.plan.checkpoint.interval, records, _lost(records))
    schedule = _schedule_of(pipeline)
    if interval == _beginning(stage, schedule):
        return Earlier()
    before = previous_key(interval, schedule)
    records = known.newest(Cell(pipeline.name, stage.id, before))
    if records:
        return earlier_of(before, records, _lost(records))
    taken_over = begins_with.kept(stage) if begins_with else ()
    own = (*known.newest(Cell(pipeline.name, stage.id, interval)), *taken_over)
    return _without(before, pipeline, stage, interval, own, known)


def _without(
    before: str, pipeline: Pipeline, stage: Stage, interval: str, own: Sequence[PartitionRecord], known: KnownIntervals
) -> Earlier:
    """What a stage begins with if the interval before has no records: either this is the first interval, or there is a
    gap.
    """
    missing = _missing(pipeline, stage, interval, known)
    if missing:
        return Earlier(before, gap=Gap(missing))
    # It was taken over from another lake, or the ledger has forgotten it: what it was made from is unknown here.
    made_from = next((part.after for record in own for part in record.states if part.after), None)
    return Earlier(made_from, gap=Gap(made_from)) if made_from else Earlier()


def _missing(pipeline: Pipeline, stage: Stage, interval: str, known: KnownIntervals) -> str | None:
    """The first interval that has to run before this one; None if the stage begins here. An interval that was asked
    for is waited for though it has left nothing: else its state would be missing, and nobody would see it.
    """
    schedule = _schedule_of(pipeline)
    begins = _beginning(stage, schedule)
    earlier = [
        key
        for key in earlier_intervals(pipeline, stage, interval, known)
        if not _begins_anew_between(key, interval, begins, schedule)
    ]
    if earlier:
        return following_key(earlier[0], schedule)
    if begins and _before(interval, [begins], schedule):
        return begins
    asked = _before(interval, known.unfinished(pipeline.name), schedule)
    return asked[-1] if asked else None


def _schedule_of(pipeline: Pipeline) -> str:
    assert pipeline.schedule is not None, "checked by the spec"
    return pipeline.schedule


def _beginning(stage: Stage, schedule: str) -> str | None:
    return interval_key(stage.state_begins, schedule) if stage.state_begins else None


def _begins_anew_between(earlier: str, later: str, begins: str | None, schedule: str) -> bool:
    """Whether what ``earlier`` keeps is nothing to ``later``, since state begins with nothing after it."""
    first, begun, last = (moment_of(key, schedule) for key in (earlier, begins or "", later))
    return bool(first and begun and last and first < begun <= last)


def _lost(records: Sequence[PartitionRecord]) -> frozenset[int]:
    """Partitions whose state cannot be read now; the lake is asked each time."""
    return missing_files([replace(record, files=()) for record in records if record.states])


def _before(interval: str, known: Collection[str], schedule: str | None) -> tuple[str, ...]:
    """The newest first."""
    own = moment_of(interval, schedule)
    return tuple(key for moment, key in _in_order(known, schedule)[::-1] if own and moment < own)


def _in_order(known: Collection[str], schedule: str | None) -> list[tuple[datetime, str]]:
    """Intervals that have a place in time, each with that place."""
    return sorted((moment, key) for key in known if (moment := moment_of(key, schedule)))
