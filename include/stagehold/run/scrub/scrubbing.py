"""Reads what is recorded again, and puts on record what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from stagehold.errors import Fenced, LeaseHeld
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.plan.determinism.verification import Mismatch, as_damaged
from stagehold.plan.scrub import (
    ChosenPartitions,
    Condition,
    ScrubFinding,
    ScrubTarget,
    StageScrub,
    first_findings,
    in_order,
    mismatch_found,
    overtaken,
    to_compare,
)
from stagehold.plan.split.regions import stage_regions
from stagehold.run.delivery.comparison import mismatches
from stagehold.run.equipment.engine import Fingerprints
from stagehold.run.equipment.workplace import Progress, Workplace
from stagehold.run.faults import Faults
from stagehold.run.lease.leasing import take_lease
from stagehold.run.planning.planning import RunRequest
from stagehold.run.scrub.looking import Draw, look, task_of
from stagehold.run.stage.attempt_session import session_of
from stagehold.run.stage.spark_engine import SparkEngine
from stagehold.run.stage.wave_session import SparkStageSession
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server

OpenSession = Callable[[timedelta], AbstractContextManager[Fingerprints]]


@dataclass(frozen=True)
class ScrubPlace:
    """What a scrub has at hand. ``open_session`` is called only if there is content to read; it is told after which
    time without progress a call is broken off.
    """

    ledger: Ledger
    settings: Settings
    progress: Progress
    open_session: OpenSession


def scrub_with_spark(ledger: Ledger, settings: Settings, progress: Progress) -> ScrubPlace:
    """On the server that runs of this home share."""

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


@dataclass(frozen=True)
class _Stage:
    """One stage for one interval; ``session`` is None if of no stage there is anything to read."""

    request: RunRequest
    target: ScrubTarget
    session: Fingerprints | None
    place: ScrubPlace

    def scrub(self) -> StageScrub:
        records = to_compare(self.target)
        damaged = mismatches(records, self.session) if records and self.session else []
        found = (*first_findings(self.target), *(self._mark(damaged) if damaged else ()))
        result = StageScrub(self.target, tuple(sorted(found, key=lambda finding: finding.record.partition)))
        self._tell(result)
        return result

    def _mark(self, damaged: Sequence[Mismatch]) -> Iterator[ScrubFinding]:
        """Under the region's lease, as an attempt would; an attempt that works on it now is not waited for."""
        place, cell = self.place, self.target.cell
        (region,) = (one for one in stage_regions(self.request.pipeline) if one.name == self.target.region)
        engine, faults = SparkEngine(place.settings, place.progress), Faults(place.settings.home_path, cell.interval)
        workplace = Workplace(place.ledger, place.settings, place.progress, engine, faults)
        try:
            lease = take_lease(task_of(self.request, region), workplace)
        except LeaseHeld as held:
            yield from (mismatch_found(one, marked=False, why_not=f"not marked: {held}") for one in damaged)
            return
        try:
            same = self._unchanged([one.record for one in damaged])
            place.ledger.partitions.record([as_damaged(record, datetime.now(UTC)) for record in same], lease)
        except Fenced as fenced:
            yield from (mismatch_found(one, marked=False, why_not=f"not marked: {fenced}") for one in damaged)
        else:
            for one in damaged:
                yield mismatch_found(one, marked=True) if one.record in same else overtaken(one.record)
        finally:
            place.ledger.leases.release(lease)

    def _unchanged(self, records: Sequence[PartitionRecord]) -> list[PartitionRecord]:
        """Those that would be read if they were looked at now: still the newest, there, and not removed by others."""
        cell = self.target.cell
        chosen = ChosenPartitions({cell: frozenset(record.partition for record in records)})
        now = [target for target in look(self.request, chosen, self.place.ledger) if target.cell == cell]
        return [record for target in now for record in to_compare(target) if record in records]

    def _tell(self, result: StageScrub) -> None:
        counts = {condition: result.count(condition) for condition in Condition}
        told = "".join(f", {count} {condition}" for condition, count in counts.items() if count)
        cell = self.target.cell
        self.place.progress(f"{cell.pipeline} {cell.interval} {self.target.stage.name}: {result.checked} checked{told}")
        if self.target.busy:
            self.place.progress(f"  skipped: {self.target.busy} works on {self.target.region}; it was not waited for")
