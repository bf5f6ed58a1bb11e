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
from stagehold.run.attempt.ownership import this_process
from stagehold.run.attempt.task import region_lease
from stagehold.settings import Settings
from stagehold.sources.contents import ReadingInterval, Taken, contents_of
from stagehold.sources.files import SourceRoots
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.source import SourceKind


@dataclass(frozen=True)
class Retake:
    """A source stage of a pipeline, and the interval whose files are taken anew."""

    pipeline: Pipeline
    stage: Stage
    interval: str

    @property
    def cell(self) -> Cell:
        return Cell(self.pipeline.name, self.stage.id, self.interval)


def retake(wanted: Retake, ledger: Ledger, settings: Settings, *, dry_run: bool) -> tuple[FileChange, ...]:
    """What changes for the interval; unless it is a ``dry_run``, that is recorded, behind what it took before.

    The region's lease is held meanwhile, so no attempt can publish what it read of the old files.

    :raises RetakeRefused: the source is not of that kind, the interval took nothing, or something made from it is
    published :raises SourceChanged: files that other intervals took are not what they were :raises LeaseHeld: an
    attempt works on the region now
    """
    _refuse_other_sources(wanted)
    with _lease(wanted, ledger, settings):
        taken = ledger.positions.taken(wanted.pipeline.name, wanted.stage.id)
        before = taken.get(wanted.interval)
        if not isinstance(before, FilesRead):
            raise _refused(
                wanted, f"interval {wanted.interval} has taken no files of it; its next run takes what there is"
            )
        _refuse_published(wanted, before, ledger)
        others = {interval: position for interval, position in taken.items() if interval != wanted.interval}
        source = wanted.stage.source
        assert source is not None, "checked above"
        reader = ReadingInterval(wanted.pipeline.name, wanted.interval)
        roots = SourceRoots(settings.production.lake_uri, settings.project)
        contents = contents_of(reader, wanted.stage.name, source, roots)
        contents.check(others)
        after = _choose(wanted, ledger, contents.choose, others, dry_run=dry_run)
        assert isinstance(after, FilesRead), "a source of files gives files"
        return file_changes(before, after)


def _refuse_other_sources(wanted: Retake) -> None:
    source = wanted.stage.source
    if source is None or not source.incremental:
        raise _refused(
            wanted, "it has no incremental source, and whatever else a run reads, it looks at anew by itself"
        )
    if source.kind is SourceKind.DELTA:
        raise _refused(wanted, "it reads a Delta table, whose files never change")


def _refuse_published(wanted: Retake, before: FilesRead, ledger: Ledger) -> None:
    """Whatever was ever published counts, also if a later try of the same partition was refused by its gate."""
    names = descendants(wanted.pipeline, wanted.stage.name)
    stages = [stage for stage in wanted.pipeline.stages if stage.name in names]
    made = {
        f"{stage.name}[{record.partition}] (version {record.version})": None
        for stage in stages
        for record in ledger.partitions.history(Cell(wanted.pipeline.name, stage.id, wanted.interval))
        if record.version is not None
    }
    if made:
        raise _refused(
            wanted,
            "what was made from them is published",
            made=tuple(made),
            files=tuple(file.path for file in before.files),
        )


def _choose(wanted: Retake, ledger: Ledger, choose: Choose, others: Taken, *, dry_run: bool) -> Position:
    if dry_run:
        return choose(others)
    return ledger.positions.take_again(wanted.cell, f"retake by {getpass.getuser()}", choose)


@contextmanager
def _lease(wanted: Retake, ledger: Ledger, settings: Settings) -> Iterator[None]:
    region = next(region.name for region in stage_regions(wanted.pipeline) if wanted.stage.name in region.stages)
    name, holder = (
        region_lease(wanted.pipeline.name, wanted.interval, region),
        this_process(f"retake/{wanted.stage.name}"),
    )
    lease = ledger.leases.take(name, None, str(holder), settings.lease_seconds, holder.may_seize)
    try:
        yield
    finally:
        ledger.leases.release(lease)


def _refused(wanted: Retake, reason: str, *, made: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> RetakeRefused:
    return RetakeRefused(wanted.stage.name, reason, made=made, files=files)
