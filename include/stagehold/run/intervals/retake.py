"""Has an interval take its files of an incremental source anew,
as long as nothing that was made from them is published.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stagehold.errors import RetakeRefused
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.positions import Choose
from stagehold.model.records import Cell
from stagehold.model.source_position import FilesRead, Position
from stagehold.plan.resume.planner import descendants
from stagehold.plan.sources.positions import FileChange, file_changes
from stagehold.plan.split.regions import stage_regions
from stagehold.run.journal.ownership import this_process
from stagehold.run.planning.task import region_lease
from stagehold.settings import Settings
from stagehold.sources.contents import ReadingInterval, Taken, contents_of
from stagehold.sources.files import SourceRoots
from stagehold.sources.outcome import published_of
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.source import SourceKind


@dataclass(frozen=True)
class Retake:
    """A source stage of a pipeline, and the interval whose files are taken anew."""

    pipeline: Pipeline
    stage: Stage
    interval: str

    @property
    def cell(self) -> Cell:
        return Cell(self.pipeline.name, self.stage.id, self.interval)

    @contextmanager
    def lease(self, ledger: Ledger, settings: Settings) -> Iterator[None]:
        """Of the region, so that no attempt works on the interval meanwhile.

        :raises LeaseHeld: one does.
        """
        region = next(region for region in stage_regions(self.pipeline) if self.stage.name in region.stages)
        name, holder = (
            region_lease(self.pipeline.name, self.interval, region.name),
            this_process(f"retake/{self.stage.name}"),
        )
        lease = ledger.leases.take(name, None, str(holder), settings.lease_seconds, holder.may_seize)
        try:
            yield
        finally:
            ledger.leases.release(lease)


def retake(wanted: Retake, ledger: Ledger, settings: Settings, *, dry_run: bool) -> tuple[FileChange, ...]:
    """What changes for the interval; unless it is a ``dry_run``, that is recorded, behind what it took before.

    The region's lease is held meanwhile, so no attempt can publish what it read of the old files.

    :raises RetakeRefused: the source is not of that kind, the interval took nothing, or something made from it is
    published :raises SourceChanged: files that other intervals took are not what they were :raises LeaseHeld: an
    attempt works on the region now
    """
    _refuse_other_sources(wanted)
    with wanted.lease(ledger, settings):
        taken = ledger.positions.taken(wanted.pipeline.name, wanted.stage.id)
        before = taken.get(wanted.interval)
        if not isinstance(before, FilesRead):
            raise refused(
                wanted, f"interval {wanted.interval} has taken no files of it; its next run takes what there is"
            )
        _refuse_published(wanted, before, ledger)
        others = {interval: position for interval, position in taken.items() if interval != wanted.interval}
        source = wanted.stage.source
        assert source is not None, "checked above"
        reader = ReadingInterval(wanted.pipeline.name, wanted.interval)
        contents = contents_of(reader, wanted.stage.name, source, roots_of(settings))
        contents.check(others)
        after = _choose(wanted, ledger, contents.choose, others, dry_run=dry_run)
        assert isinstance(after, FilesRead), "a source of files gives files"
        return file_changes(before, after)


def roots_of(settings: Settings) -> SourceRoots:
    """Where sources are: those of production, also for a sandbox."""
    return SourceRoots(settings.production.lake_uri, settings.project)


def _refuse_other_sources(wanted: Retake) -> None:
    source = wanted.stage.source
    if source is None or not source.incremental:
        raise refused(wanted, "it has no incremental source, and whatever else a run reads, it looks at anew by itself")
    if source.kind is SourceKind.DELTA:
        raise refused(wanted, "it reads a Delta table, so say from which version on: `--from-version N`")


def made_from(wanted: Retake, ledger: Ledger) -> tuple[str, ...]:
    """What was published of all that is made from what the interval took."""
    names = descendants(wanted.pipeline, wanted.stage.name)
    stages = [stage for stage in wanted.pipeline.stages if stage.name in names]
    return published_of(wanted.pipeline.name, stages, wanted.interval, ledger)


def _refuse_published(wanted: Retake, before: FilesRead, ledger: Ledger) -> None:
    if made := made_from(wanted, ledger):
        files = tuple(file.path for file in before.files)
        raise refused(wanted, "what was made from them is published", made=made, files=files)


def _choose(wanted: Retake, ledger: Ledger, choose: Choose, others: Taken, *, dry_run: bool) -> Position:
    if dry_run:
        return choose(others)
    return ledger.positions.take_again(wanted.cell, f"retake by {getpass.getuser()}", choose)


def refused(wanted: Retake, reason: str, *, made: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> RetakeRefused:
    return RetakeRefused(wanted.stage.name, reason, made=made, files=files)
