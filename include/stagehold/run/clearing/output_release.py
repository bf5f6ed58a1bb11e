"""Releases stored outputs when a run no longer needs them: first in the ledger, then in the lake."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from rich.filesize import decimal

from stagehold.checkpoints.releasing import (
    Recorded,
    as_released,
    finished_partitions,
    intervals_over,
    releasable_stages,
    released_at_end,
    released_at_once,
)
from stagehold.errors import LeaseHeld, StageholdError
from stagehold.ledger.leases import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Pin
from stagehold.model.records import PartitionRecord, Run, RunState
from stagehold.plan.garbage import Why
from stagehold.run.clearing.cleared_interval import Cleared, ClearedInterval
from stagehold.run.clearing.interval_garbage import (
    AgeLimits,
    IntervalCheckpoints,
    delete_garbage,
    find_all_garbage,
)
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import ClearingPoint
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ReleasePolicy

# Intervals that the end of a run looks at; normally one is due. `stagehold gc` looks at all of them.
LOOKED_AT = 3

Choose = Callable[[Pipeline, Recorded], Sequence[PartitionRecord]]

log = logging.getLogger(__name__)


def release_after_attempt(request: RunRequest, workplace: Workplace) -> None:
    """Release outputs that are no longer needed at the end of an attempt, or of the run with it.

    Raises nothing: outputs that could not be released now are found again at the next end, or by `stagehold gc`.
    """
    try:
        for release in _due(request, workplace):
            release.carry_out()
    except LeaseHeld as held:
        log.info("nothing was released: %s", held)
    except Exception as error:
        log.warning("outputs of %s not released", request.run_id, exc_info=not isinstance(error, StageholdError))
        workplace.progress(f"outputs were not released: {error}")


def _due(request: RunRequest, workplace: Workplace) -> Iterator[Release]:
    ledger, pipeline = workplace.ledger, request.pipeline
    if pipeline.release is ReleasePolicy.AT_ONCE:
        yield _release_at_once(request, workplace)
    if pipeline.release is not ReleasePolicy.KEEP and ledger.runs.get(request.run_id).state is RunState.FINISHED:
        over = intervals_over_now(pipeline, ledger.runs.newest_of_intervals(pipeline.name), ledger)
        for interval in [interval for interval, pin in over.items() if pin is None][:LOOKED_AT]:
            yield end_of(ClearedInterval.of(pipeline, interval, workplace))


def intervals_over_now(pipeline: Pipeline, newest_runs: Sequence[Run], ledger: Ledger) -> Mapping[str, Pin | None]:
    """Intervals whose outputs `retain` lets go, each with the pin that keeps them all the same, if there is one; most
    of them have no outputs any more. Pinned intervals are counted among the others, so that those go as they would
    without pins.
    """
    sizes: dict[str, int] = defaultdict(int)
    if pipeline.retain.bytes is not None:
        stages = releasable_stages(pipeline)
        for figures in ledger.partitions.figures(pipeline.name, [run.interval for run in newest_runs]):
            if figures.stage in stages and figures.state.readable:
                sizes[figures.interval] += figures.bytes
    pins = ledger.pins.holding(pipeline.name)
    over = intervals_over(newest_runs, pipeline.retain, sizes, datetime.now(UTC))
    return {interval: pins.get(interval) for interval in over}


def _release_at_once(request: RunRequest, workplace: Workplace) -> Release:
    """The outputs to release at once. A reader has not finished while the run's plan says that it runs: outputs that
    are healed for it would be released before it gets there.
    """
    place = ClearedInterval.of(request.pipeline, request.interval, workplace)
    finished = finished_partitions(place.pipeline, workplace.ledger.attempts.of_run(request.run_id))
    plan = IntervalView.of_run(request, workplace.ledger, workplace.settings).plan
    still = {
        stage: {
            decision.partition
            for decision in plan.of(stage)
            if decision.partition in partitions and not decision.action.computes
        }
        for stage, partitions in finished.items()
    }
    return Release(place, partial(released_at_once, finished=still))


def end_of(place: ClearedInterval) -> Release:
    """The release of everything that a finished run no longer needs."""
    return Release(place, released_at_end, with_checkpoints=True)


class Release:
    """The release of what ``choose`` says, for one interval. Its checkpoints are deleted as well if no run will go on
    from them.
    """

    def __init__(self, place: ClearedInterval, choose: Choose, with_checkpoints: bool = False) -> None:
        self.place, self.choose, self.with_checkpoints = place, choose, with_checkpoints

    @property
    def chosen(self) -> tuple[PartitionRecord, ...]:
        return tuple(self.choose(self.place.pipeline, self.place.recorded()))

    def announced(self) -> tuple[Cleared, ...]:
        """What `carry_out` would delete, without superseded files."""
        by_stage: dict[str, list[PartitionRecord]] = defaultdict(list)
        for record in self.chosen:
            by_stage[self._names[record.cell.stage]].append(record)
        checkpoints = IntervalCheckpoints(self.place)
        return (
            *(self._announced(stage, records) for stage, records in by_stage.items()),
            *(checkpoints.announced(checkpoints.kept()) if self.with_checkpoints else ()),
        )

    def _announced(self, stage: str, records: Sequence[PartitionRecord]) -> Cleared:
        files, size = sum(len(record.files) for record in records), sum(record.bytes for record in records)
        return self.place.cleared(stage, Why.RELEASED, files, size)

    def carry_out(self) -> tuple[Cleared, ...]:
        """Release and delete; returns what was deleted, which is nothing for a pinned interval. A crash between the
        ledger's records and the deletion leaves files to `stagehold gc`.

        :raises LeaseHeld: a process computes or reads what is to be released.
        :raises CheckpointCorrupt: what a checkpoint needs is unknown; the outputs are released, and nothing is deleted.
        """
        stages = self._stages if self.place.pin is None else frozenset[str]()
        if not stages:
            return ()
        with self.place.held(stages) as hearts:
            if self.place.pin is not None:  # it was pinned since then
                return ()
            dropped = IntervalCheckpoints(self.place).drop_all() if self.with_checkpoints else ()
            released = self._record(hearts)
            self.place.workplace.faults.reach(ClearingPoint.RELEASED, self.place.pipeline.name)
            cleared = (*dropped, *delete_garbage(self.place, stages, hearts, AgeLimits(datetime.now(UTC))))
        freed = sum(item.bytes for item in cleared)
        self.place.workplace.progress(f"{self.place}: released {released} partitions, {decimal(freed)} deleted")
        return cleared

    @property
    def _stages(self) -> frozenset[str]:
        """Stages of which something is released, or may be deleted once no checkpoint points to it any more."""
        chosen = (self._names[record.cell.stage] for record in self.chosen)
        if not self.with_checkpoints:
            return frozenset((*chosen, *self._left))
        pinned = IntervalCheckpoints(self.place).kept()
        return frozenset((*chosen, *(stage.name for stage in self.place.stages if pinned and not stage.output.table)))

    @property
    def _left(self) -> Iterator[str]:
        """Stages of which something was released earlier, while a checkpoint pointed to it or was being taken."""
        for found in find_all_garbage(self.place, AgeLimits(datetime.now(UTC))):
            if any(file.why is Why.RELEASED for file in found.files):
                yield found.stage.name

    def _record(self, hearts: Mapping[str, Heartbeat]) -> int:
        """Record the release by the plan as it is now that nobody else works there."""
        now = datetime.now(UTC)
        by_heart: dict[Heartbeat, list[PartitionRecord]] = defaultdict(list)
        for record in self.chosen:
            if heart := hearts.get(self._names[record.cell.stage]):
                by_heart[heart].append(as_released(record, now))
        with self.place.ledger.together():
            for heart, records in by_heart.items():
                self.place.ledger.partitions.record(records, heart.lease)
        return sum(map(len, by_heart.values()))

    @property
    def _names(self) -> Mapping[str, str]:
        """The names of stages, by their ids."""
        return {stage.id: stage.name for stage in self.place.pipeline.stages}
