"""Reads again what is on record, of intervals or of a checkpoint that a run begins with, and marks what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from uuid import uuid4

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.errors import Fenced, InvalidInterval, LeaseHeld, UnknownName
from stagehold.lake.available import sizes_now
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.interval_key import interval_key
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import Mismatch, as_damaged, to_verify
from stagehold.plan.resume.situation import StageData
from stagehold.plan.scrub import (
    Condition,
    Draw,
    ScrubFinding,
    ScrubTarget,
    StageScrub,
    first_findings,
    in_order,
    mismatch_found,
    only,
    overtaken,
    to_compare,
)
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.run.delivery.content_check import beyond_repair
from stagehold.run.equipment.workplace import Fingerprints, Progress, Workplace
from stagehold.run.faults import Faults
from stagehold.run.lease.lease_holder import described, this_process
from stagehold.run.lease.leasing import take_lease
from stagehold.run.planning.on_record import on_record
from stagehold.run.planning.planning import RunRequest, counted, in_its_form
from stagehold.run.planning.task import RegionTask
from stagehold.run.stage.spark_engine import SparkEngine, SparkStageSession, session_of
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server
from stagehold.spec.pipeline import Pipeline, Stage

OpenSession = Callable[[timedelta], AbstractContextManager[Fingerprints]]


class ScrubPlace:
    """What a scrub has at hand. ``open_session`` is called only if there is content to read; it is told after which
    time without progress a call is broken off.
    """

    def __init__(self, ledger: Ledger, settings: Settings, progress: Progress, open_session: OpenSession) -> None:
        self.ledger, self.settings, self.progress, self.open_session = ledger, settings, progress, open_session


def scrub_with_spark(ledger: Ledger, settings: Settings, progress: Progress) -> ScrubPlace:
    """A place to scrub with the Spark server that runs of this home share."""

    @contextmanager
    def open_session(stall_timeout: timedelta) -> Iterator[Fingerprints]:
        name = f"verify-{uuid4().hex}"
        with spark_server(settings, "verify"), session_of(name, (), settings, progress, stall_timeout) as spark:
            yield SparkStageSession(spark, settings)

    return ScrubPlace(ledger, settings, progress, open_session)


def scrub(requests: Sequence[RunRequest], draw: Draw, place: ScrubPlace) -> tuple[StageScrub, ...]:
    """Look at what is recorded for ``requests``, and mark what is damaged, so that every later plan heals it.

    No lease is held while data is read, so nobody has to wait for a scrub. Data that changes after it was read is not
    noticed.
    """
    place.progress(f"looking at what is on record for {len(requests)} intervals")
    by_cell = {target.cell: (request, target) for request in requests for target in look(request, draw, place.ledger)}
    targets = in_order(target for _, target in by_cell.values())
    with _session_if_needed(targets, requests, place) as session:
        return tuple(_Stage(by_cell[target.cell][0], target, session, place).scrub() for target in targets)


def _session_if_needed(
    targets: Sequence[ScrubTarget], requests: Sequence[RunRequest], place: ScrubPlace
) -> AbstractContextManager[Fingerprints | None]:
    if not any(to_compare(target) for target in targets):
        return nullcontext()
    return place.open_session(max(request.pipeline.stall_timeout for request in requests))


class _Stage:
    """A stage of an interval; ``session`` is None if there is nothing to read of any stage."""

    def __init__(
        self, request: RunRequest, target: ScrubTarget, session: Fingerprints | None, place: ScrubPlace
    ) -> None:
        self.request, self.target, self.session, self.place = request, target, session, place

    def scrub(self) -> StageScrub:
        records = to_compare(self.target)
        place, session = self.place, self.session
        damaged = beyond_repair(records, session, place.settings, place.progress) if records and session else []
        found = (*first_findings(self.target), *(self._mark(damaged) if damaged else ()))
        result = StageScrub(self.target, tuple(sorted(found, key=lambda finding: finding.record.partition)))
        self._tell(result)
        return result

    def _mark(self, damaged: Sequence[Mismatch]) -> Iterator[ScrubFinding]:
        """Mark them under the region's lease, as an attempt would; one that works on it now is not waited for."""
        place, cell = self.place, self.target.cell
        (region,) = (region for region in stage_regions(self.request.pipeline) if region.name == self.target.region)
        engine, faults = SparkEngine(place.settings, place.progress), Faults(place.settings.home_path, cell.interval)
        workplace = Workplace(place.ledger, place.settings, place.progress, engine, faults)
        try:
            lease = take_lease(task_of(self.request, region), workplace)
        except LeaseHeld as held:
            yield from (mismatch_found(mismatch, marked=False, why_not=f"not marked: {held}") for mismatch in damaged)
            return
        try:
            same = self._unchanged([record for record, _ in damaged])
            place.ledger.partitions.record([as_damaged(record, datetime.now(UTC)) for record in same], lease)
        except Fenced as fenced:
            yield from (mismatch_found(mismatch, marked=False, why_not=f"not marked: {fenced}") for mismatch in damaged)
        else:
            for mismatch in damaged:
                yield mismatch_found(mismatch, marked=True) if mismatch[0] in same else overtaken(mismatch[0])
        finally:
            place.ledger.leases.release(lease)

    def _unchanged(self, records: Sequence[PartitionRecord]) -> list[PartitionRecord]:
        """Records that would be read if they were looked at now: still the newest, there, and not removed by others."""
        cell = self.target.cell
        chosen = only({cell: frozenset(record.partition for record in records)})
        now = [target for target in look(self.request, chosen, self.place.ledger) if target.cell == cell]
        return [record for target in now for record in to_compare(target) if record in records]

    def _tell(self, result: StageScrub) -> None:
        counts = {condition: result.count(condition) for condition in Condition}
        told = "".join(f", {count} {condition}" for condition, count in counts.items() if count)
        cell = self.target.cell
        self.place.progress(f"{cell.pipeline} {cell.interval} {self.target.stage.name}: {result.checked} checked{told}")
        if self.target.busy:
            self.place.progress(f"  skipped: {self.target.busy} works on {self.target.region}; it was not waited for")


LAUNCHER = "cli"
SCRUBBED = (PartitionState.CONSUMABLE, PartitionState.DAMAGED)  # what is found damaged is looked at again
SHOWN = 10  # intervals that a refusal names


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
    """A target for each stage of which partitions are drawn. Opens no data file."""
    request = in_its_form(request, ledger)
    pipeline = counted(request, ledger).pipeline
    found = on_record(pipeline, ledger.partitions.newest_of(pipeline.name, request.interval), ledger)
    regions = {stage: region for region in stage_regions(pipeline) for stage in region.stages}
    for stage in pipeline.stages:
        if stage.output.stored and stage.name in found:
            target = _target(stage, task_of(request, regions[stage.name]), found[stage.name], draw, ledger)
            if target.records:
                yield target


def task_of(request: RunRequest, region: Region) -> RegionTask:
    return RegionTask(request, region, owner=f"{LAUNCHER}/{request.run_id}", launcher=LAUNCHER)


def _target(stage: Stage, task: RegionTask, found: StageData, draw: Draw, ledger: Ledger) -> ScrubTarget:
    cell = Cell(task.pipeline.name, stage.id, task.request.interval)
    readable = [record for record in found.records if record.state in SCRUBBED and record.partition < stage.partitions]
    records = draw(cell, readable)
    return ScrubTarget(
        cell=cell,
        stage=stage,
        region=task.region.name,
        records=records,
        gone={record.partition: sizes_now(record) for record in records if record.partition in found.gone},
        removed=found.removed,
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
    """A request with the parameters of the interval's newest run, as a resume of that would have."""
    newest = ledger.runs.newest(pipeline.name, interval)
    run_id = f"{pipeline.name}/verify__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    return RunRequest(pipeline, run_id, interval, newest.params if newest else pipeline.params)


class SnapshotComparison:
    """Compares what a checkpoint has with its fingerprints, before a run begins with it: as much as `verify` says,
    which is also what attempts read of that which they reuse. A session is opened if there is something to read, and
    kept until ``opened`` is left.
    """

    def __init__(self, pipeline: Pipeline, place: ScrubPlace, opened: ExitStack) -> None:
        self._pipeline, self._place, self._opened = pipeline, place, opened
        self._seed = uuid4().hex

    def damaged(self, stages: Sequence[StageSnapshot]) -> dict[str, list[int]]:
        """Partitions by stage whose content is not what was recorded. The first stage with one is enough to know."""
        for stage in stages:
            consumable = [record for record in stage.partitions if record.state.readable]
            seed = f"{self._seed}/{stage.shape.id}"
            chosen = to_verify(self._pipeline.verify, consumable, run_id="", interrupted=True, seed=seed)
            place = self._place
            if chosen and (found := beyond_repair(chosen, self._session, place.settings, place.progress)):
                return {stage.shape.name: [record.partition for record, _ in found]}
        return {}

    @cached_property
    def _session(self) -> Fingerprints:
        return self._opened.enter_context(self._place.open_session(self._pipeline.stall_timeout))
