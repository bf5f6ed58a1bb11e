"""What there is to scrub: which intervals of which pipelines, and what is known of them before any content is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from stagehold.errors import InvalidInterval, UnknownName
from stagehold.lake.available import sizes_now
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.interval_key import interval_key
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.scrub import ScrubTarget
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.run.journal.ownership import described, this_process
from stagehold.run.planning.on_record import OnRecord, on_record
from stagehold.run.planning.planning import RunRequest, counted, in_its_form
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Pipeline, Stage

LAUNCHER = "cli"
SCRUBBED = (PartitionState.CONSUMABLE, PartitionState.DAMAGED)  # what is found damaged is looked at again
SHOWN = 10  # intervals that a refusal names


class Draw(Protocol):
    """Chooses partitions of one stage and interval."""

    def draw(self, cell: Cell, records: Sequence[PartitionRecord]) -> tuple[PartitionRecord, ...]: ...


def requests_asked(pipelines: Sequence[Pipeline], interval: str | None, ledger: Ledger) -> tuple[RunRequest, ...]:
    """A run for every interval on record, or for the one that is asked for: as which it is looked at and healed.

    :raises UnknownName: nothing is on record of the interval in any of ``pipelines``.
    :raises InvalidInterval: there is no such interval in the only pipeline, or it may be several.
    """
    known = {pipeline.name: ledger.partitions.intervals(pipeline.name) for pipeline in pipelines}
    if interval is None:
        return tuple(_request(pipeline, key, ledger) for pipeline in pipelines for key in known[pipeline.name])
    if len(pipelines) == 1:
        interval_key(interval, pipelines[0].schedule)
    asked = [
        (pipeline, key) for pipeline in pipelines for key in _keys(interval, pipeline) if key in known[pipeline.name]
    ]
    if not asked:
        newest = dict.fromkeys(key for keys in known.values() for key in keys[:SHOWN])
        raise UnknownName("interval on record", interval, tuple(newest)[:SHOWN])
    return tuple(_request(pipeline, key, ledger) for pipeline, key in asked)


def look(request: RunRequest, draw: Draw, ledger: Ledger) -> Iterator[ScrubTarget]:
    """One target for each stage of which partitions are drawn. Opens no data file."""
    request = in_its_form(request, ledger)
    pipeline = counted(request, ledger).pipeline
    found = on_record(pipeline, request.interval, ledger)
    regions = {stage: region for region in stage_regions(pipeline) for stage in region.stages}
    for stage in pipeline.stages:
        if stage.output.stored and stage.name in found.records:
            target = _target(stage, task_of(request, regions[stage.name]), found, draw, ledger)
            if target.records:
                yield target


def task_of(request: RunRequest, region: Region) -> RegionTask:
    return RegionTask(request, region, owner=f"{LAUNCHER}/{request.run_id}", launcher=LAUNCHER)


def _target(stage: Stage, task: RegionTask, found: OnRecord, draw: Draw, ledger: Ledger) -> ScrubTarget:
    cell = Cell(task.pipeline.name, stage.id, task.request.interval)
    readable = [
        record
        for record in found.records[stage.name]
        if record.state in SCRUBBED and record.partition < stage.partitions
    ]
    records, gone = draw.draw(cell, readable), found.gone[stage.name]
    return ScrubTarget(
        cell=cell,
        stage=stage,
        region=task.region.name,
        records=records,
        gone={record.partition: sizes_now(record) for record in records if record.partition in gone},
        removed=found.removed.get(stage.name, {}),
        busy=_busy(task, ledger),
    )


def _busy(task: RegionTask, ledger: Ledger) -> str | None:
    """Who works on the region; nobody if its holder is a process that has ended."""
    holder = ledger.leases.holder(task.lease_name)
    return None if holder is None or this_process(task.owner).may_seize(holder) else described(holder)


def _keys(interval: str, pipeline: Pipeline) -> Iterator[str]:
    with suppress(InvalidInterval):
        yield interval_key(interval, pipeline.schedule)


def _request(pipeline: Pipeline, interval: str, ledger: Ledger) -> RunRequest:
    """With the parameters of the interval's newest run, as a resume of that would have."""
    newest = ledger.runs.newest(pipeline.name, interval)
    run_id = f"{pipeline.name}/verify__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    return RunRequest(pipeline, run_id, interval, newest.params if newest else pipeline.params)
