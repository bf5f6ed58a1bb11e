"""Decides when strays may be swept: after an attempt's own fence, or over the whole lake region by region."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from stagehold.errors import LeaseHeld
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.tokens import newest_epoch, tokens_of
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.location import TableLocation, table_location
from stagehold.lake.sweep import StrayFolder, find_strays, remove
from stagehold.ledger.leases import region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Cell
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.lease_holder import this_process
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RegionSweep:
    """The files that dead attempts of one region left for one interval. ``passed_over`` says why they stay, None when
    they may be deleted.
    """

    attempt: Attempt
    strays: tuple[StrayFolder, ...]
    passed_over: str | None = None

    @property
    def bytes(self) -> int:
        return sum(stray.bytes for stray in self.strays)


class Sweeper:
    """Deletes the files of dead attempts, once it is certain that these attempts publish nothing more."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self._ledger, self._settings = ledger, settings

    def sweep_behind(self, attempt: Attempt, cell: Cell, location: TableLocation) -> tuple[StrayFolder, ...]:
        """Delete the files of earlier attempts of a stage, which ``attempt`` has fenced.

        Never fails the attempt, whose work is done: files that could not be deleted are found again.
        """
        try:
            strays = self._strays(attempt, {cell: location})
            remove(strays)
        except Exception as error:  # noqa: BLE001 - whatever the store says, the attempt's own work is done
            log.warning("strays of %s not swept: %s", location.uri, error)
            return ()
        return strays

    def sweep_lake(self, pipelines: Iterable[Pipeline], *, dry_run: bool) -> tuple[RegionSweep, ...]:
        """Find strays of every region and interval for which the ledger knows attempts, and delete them unless it is a
        ``dry_run``.

        Each region is leased and fenced as by an attempt, so a region with a live attempt is passed over. Only regions
        with strays are touched.
        """
        return tuple(sweep for pipeline in pipelines for sweep in self._sweeps(pipeline, dry_run=dry_run))

    def _sweeps(self, pipeline: Pipeline, *, dry_run: bool) -> Iterator[RegionSweep]:
        for newest in self._ledger.attempts.newest_of_regions(pipeline.name):
            places = _places(pipeline, newest, self._settings)
            last = replace(newest, share=None, epoch=newest.epoch + 1)  # the newest attempt may be dead, too
            found = self._strays(last, places)
            if found:
                yield RegionSweep(newest, found) if dry_run else self._sweep_region(last, places)

    def _sweep_region(self, last: Attempt, places: Mapping[Cell, TableLocation]) -> RegionSweep:
        """Sweep under the region's lease; strays that are found before may be a live attempt's."""
        region, seconds = region_lease(last.pipeline, last.interval, last.region), self._settings.lease_seconds
        try:
            holder, above = str(this_process("sweep")), max(_newest_epoch(location) for location in places.values())
            lease = self._ledger.leases.take(region, None, holder, seconds, lambda _: False, above=above)
        except LeaseHeld as held:
            return RegionSweep(last, (), str(held))
        try:
            sweeper, rivals = replace(last, epoch=lease.epoch), self._ledger.leases.overlapping(region, None)
            for location in places.values():
                claim = Claim(lease.epoch, sweeper.attempt_id)
                StagedCommitter().fence(location, claim, [location.of(share) for share in rivals])
            strays = self._strays(sweeper, places)
            remove(strays)
            return RegionSweep(last, strays)
        finally:
            self._ledger.leases.release(lease)

    def _strays(self, attempt: Attempt, places: Mapping[Cell, TableLocation]) -> tuple[StrayFolder, ...]:
        """The strays. Attempts that finished are left out: they published all that they wrote."""
        earlier = self._ledger.attempts.before(attempt)
        dead = [attempt.attempt_id for attempt in earlier if attempt.state is not AttemptState.FINISHED]
        older_than = datetime.now(UTC) - timedelta(seconds=self._settings.sweep_after_seconds)
        return tuple(
            stray
            for cell, location in places.items()
            for stray in find_strays(location.uri, dead, self._ledger.partitions.history(cell), older_than)
        )


def _newest_epoch(location: TableLocation) -> int:
    return newest_epoch(tokens_of(location.uri), location.cell)


def _places(pipeline: Pipeline, attempt: Attempt, settings: Settings) -> dict[Cell, TableLocation]:
    """Tables of the region; none if the pipeline no longer has a region of that name."""
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
