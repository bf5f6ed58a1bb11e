"""Puts files that the lake has lost back from this worker's copies, before anything is planned from what is there."""

from __future__ import annotations

from collections.abc import Iterator

from stagehold.lake.local_copies import LocalCopies
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.interval_key import previous_key
from stagehold.model.records import Cell, PartitionRecord
from stagehold.run.equipment.workplace import Progress
from stagehold.run.planning.planning import RunRequest, begins_with_of
from stagehold.settings import Settings


def put_lost_back(request: RunRequest, ledger: Ledger, settings: Settings, progress: Progress) -> None:
    """What a run of this request may read or reuse: data of its interval, state of the one before, and what a
    checkpoint has that it begins with. What has no whole copy here is left to the plan.
    """
    if copies := LocalCopies.of(settings):
        copies.put_back([record for record in _readable(request, ledger) if record.state.readable], progress)


def _readable(request: RunRequest, ledger: Ledger) -> Iterator[PartitionRecord]:
    pipeline, begins_with = request.pipeline, begins_with_of(request)
    for records in ledger.partitions.newest_of(pipeline.name, request.interval).values():
        yield from records
    if pipeline.schedule and any(stage.states for stage in pipeline.stages):
        before = previous_key(request.interval, pipeline.schedule)
        for stage in pipeline.stages:
            yield from ledger.partitions.newest(Cell(pipeline.name, stage.id, before)) if stage.states else ()
    if begins_with:
        for restored in begins_with.plan.stages:
            yield from restored.snapshot.partitions
