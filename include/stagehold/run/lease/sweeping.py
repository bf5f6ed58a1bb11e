"""Decides when strays may be swept: behind an attempt's own fence, or over the whole lake region by region."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from stagehold.errors import LeaseHeld
from stagehold.lake.commit.log_tokens import newest_epoch, tokens_of
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.location import TableLocation, table_location
from stagehold.lake.sweep import StrayFolder, find_strays, remove
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Cell, Lease
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.lease_holder import this_process
from stagehold.run.planning.task import region_lease
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RegionSweep:
    """What dead attempts of one region left for one interval.
    ``passed_over`` says why it stays, None when it may go.
    """

    attempt: Attempt
    strays: tuple[StrayFolder, ...]
    passed_over: str | None = None

    @property
    def bytes(self) -> int:
        return sum(stray.bytes for stray in self.strays)


def sweep_behind(
    attempt: Attempt, cell: Cell, location: TableLocation, ledger: Ledger, settings: Settings
) -> tuple[StrayFolder, ...]:
    """Delete what earlier attempts left of a stage. ``attempt`` has fenced them, so it is certain that they publish
    nothing more.

    Never fails the attempt, whose work is done: what could not be deleted is found again.
    """
    try:
        strays = _strays(attempt, cell, location, ledger, settings)
        remove(strays)
    except Exception as error:  # noqa: BLE001 - whatever the store says, the attempt's own work is done
        log.warning("strays of %s not swept: %s", location.uri, error)
        return ()
    return strays


def sweep_lake(
    pipelines: Iterable[Pipeline], ledger: Ledger, settings: Settings, *, dry_run: bool
) -> tuple[RegionSweep, ...]:
    """Find strays of every region and interval that the ledger knows attempts of, and delete them unless it is a
    ``dry_run``.

    Each region is leased and fenced like by an attempt, so one with a live attempt is passed over. Only regions that
    have strays are touched.
    """
    return tuple(
        sweep for pipeline in pipelines for sweep in _sweep_pipeline(pipeline, ledger, settings, dry_run=dry_run)
    )


def _sweep_pipeline(pipeline: Pipeline, ledger: Ledger, settings: Settings, *, dry_run: bool) -> Iterator[RegionSweep]:
    for newest in ledger.attempts.newest_of_regions(pipeline.name):
        places = _places(pipeline, newest, settings)
        last = replace(newest, share=None, epoch=newest.epoch + 1)  # the newest may be dead, too
        found = _strays_of(last, places, ledger, settings)
        if not found:
            continue
        yield RegionSweep(newest, found) if dry_run else _sweep_region(last, places, ledger, settings)


def _sweep_region(last: Attempt, places: dict[Cell, TableLocation], ledger: Ledger, settings: Settings) -> RegionSweep:
    """Under the region's lease; what is found before that may be a live attempt's."""
    region = region_lease(last.pipeline, last.interval, last.region)
    try:
        holder, above = str(this_process("sweep")), max(_newest_epoch(location) for location in places.values())
        lease = ledger.leases.take(region, None, holder, settings.lease_seconds, lambda _: False, above=above)
    except LeaseHeld as held:
        return RegionSweep(last, (), str(held))
    try:
        return RegionSweep(
            last, _fence_and_remove(replace(last, epoch=lease.epoch), places, region, lease, ledger, settings)
        )
    finally:
        ledger.leases.release(lease)


def _fence_and_remove(
    sweeper: Attempt, places: dict[Cell, TableLocation], region: str, lease: Lease, ledger: Ledger, settings: Settings
) -> tuple[StrayFolder, ...]:
    rivals = ledger.leases.overlapping(region, None)
    for location in places.values():
        StagedCommitter().fence(
            location, Claim(lease.epoch, sweeper.attempt_id), [location.of(share) for share in rivals]
        )
    strays = _strays_of(sweeper, places, ledger, settings)
    remove(strays)
    return strays


def _newest_epoch(location: TableLocation) -> int:
    return newest_epoch(tokens_of(location.uri), location.cell)


def _places(pipeline: Pipeline, attempt: Attempt, settings: Settings) -> dict[Cell, TableLocation]:
    """Tables of the region; none when the pipeline no longer has a region of that name."""
    stages = [
        pipeline.stage(name)
        for region in stage_regions(pipeline)
        if region.name == attempt.region
        for name in region.stages
    ]
    return {
        Cell(pipeline.name, stage.id, attempt.interval): table_location(
            settings.lake_uri, pipeline.name, stage, attempt.interval
        )
        for stage in stages
        if stage.output.may_have_table
    }


def _strays_of(
    attempt: Attempt, places: dict[Cell, TableLocation], ledger: Ledger, settings: Settings
) -> tuple[StrayFolder, ...]:
    return tuple(
        stray for cell, location in places.items() for stray in _strays(attempt, cell, location, ledger, settings)
    )


def _strays(
    attempt: Attempt, cell: Cell, location: TableLocation, ledger: Ledger, settings: Settings
) -> tuple[StrayFolder, ...]:
    """Attempts that finished are left out: all they wrote was published."""
    dead = [one.attempt_id for one in ledger.attempts.before(attempt) if one.state is not AttemptState.FINISHED]
    older_than = datetime.now(UTC) - timedelta(seconds=settings.sweep_after_seconds)
    return find_strays(location.uri, dead, ledger.partitions.history(cell), older_than)
