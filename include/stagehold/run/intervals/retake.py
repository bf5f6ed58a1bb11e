"""Has an interval take what an incremental source has now, in place of what it had taken and published nothing of."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from stagehold.errors import RetakeRefused
from stagehold.lake.commit.delta_log import commit_versions, read_commits
from stagehold.ledger.leases import region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.positions import Choose
from stagehold.model.records import Cell
from stagehold.model.source_position import FilesFound, FilesRead, Position, SourceFile, VersionsRead
from stagehold.plan.resume.planner import descendants
from stagehold.plan.sources.incremental_positions import file_changes
from stagehold.plan.split.regions import stage_regions
from stagehold.run.lease.lease_holder import this_process
from stagehold.settings import Settings
from stagehold.sources.delta import TableFiles, below_table, files_of_version, gone_files
from stagehold.sources.row_lineage import Lineage, RowsMixed, RowsToTake, TakenByOther
from stagehold.sources.source_contents import Taken, contents_of
from stagehold.sources.source_files import SourceRoots
from stagehold.sources.taken_positions import published_of
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
        """Hold the region's lease, so that no attempt works on the interval meanwhile.

        :raises LeaseHeld: an attempt does.
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


def retake(wanted: Retake, ledger: Ledger, settings: Settings, *, dry_run: bool) -> Mapping[str, str]:
    """What becomes of the files of the interval, by path; unless it is a ``dry_run``, that is recorded, behind what it
    took before.

    The region's lease is held meanwhile, so no attempt can publish what it read of the old files.

    :raises RetakeRefused: the source is not of that kind, the interval took nothing, or something made from it is
        published
    :raises SourceChanged: files that other intervals took are not what they were
    :raises LeaseHeld: an attempt works on the region now
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
        contents = contents_of(wanted.cell, wanted.stage.name, source, roots_of(settings))
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
    """What was published of the data made from what the interval took."""
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


@dataclass(frozen=True)
class TableRetake:
    """What the interval takes now, and the intervals that ``gave_up`` what they had taken and published nothing of."""

    before: VersionsRead
    after: VersionsRead
    bytes: int
    gave_up: tuple[str, ...]

    @property
    def left_out(self) -> str | None:
        """The versions that it had taken and that no interval takes any more."""
        first, last = self.before.first, min(self.after.first - 1, self.before.version)
        return f"versions {first} to {last}" if first <= last else None


def retake_table(
    wanted: Retake, from_version: int, ledger: Ledger, settings: Settings, *, dry_run: bool
) -> TableRetake:
    """Take everything that the table has now of its versions from ``from_version`` on, without what other intervals
    published.

    Leases of all intervals whose positions change are held meanwhile.

    :raises RetakeRefused: the source is not of that kind, the interval took nothing, something made from it is
        published, or rows cannot be told from those that others published.
    :raises LeaseHeld: an attempt works on a region now.
    """
    uri = _table_of(wanted, settings)
    with ExitStack() as leases:
        leases.enter_context(wanted.lease(ledger, settings))
        taken = ledger.positions.taken(wanted.pipeline.name, wanted.stage.id)
        before = taken.get(wanted.interval)
        if not isinstance(before, VersionsRead):
            reason = f"interval {wanted.interval} has taken nothing of it; its next run takes what there is"
            raise refused(wanted, reason)
        _refuse_published_rows(wanted, ledger)
        table = files_of_version(wanted.stage.name, uri, None)
        files, gave_up = _chosen(wanted, from_version, uri, table, _claims(wanted, taken, ledger))
        after = VersionsRead(
            from_version - 1 if from_version else None,
            max(table.version, before.version),
            FilesFound(table.version, files, table.schema),
        )
        for interval in gave_up:
            leases.enter_context(replace(wanted, interval=interval).lease(ledger, settings))
            _refuse_published_rows(replace(wanted, interval=interval), ledger)
        if not dry_run:
            _record(wanted, taken, after, gave_up, ledger)
    return TableRetake(before, after, sum(file.bytes for file in files), gave_up)


def _table_of(wanted: Retake, settings: Settings) -> str:
    source = wanted.stage.source
    if source is None or not source.incremental or source.kind is not SourceKind.DELTA:
        raise refused(wanted, "--from-version is for incremental Delta tables, and it reads none")
    return roots_of(settings).address(source.path or "")


def _refuse_published_rows(wanted: Retake, ledger: Ledger) -> None:
    if made := made_from(wanted, ledger):
        delete = f"`stagehold intervals delete {wanted.pipeline.name} '{wanted.interval}'` takes that out first"
        raise refused(wanted, f"what was made from what {wanted.interval} took is published; {delete}", made=made)


def _claims(wanted: Retake, taken: Mapping[str, Position], ledger: Ledger) -> tuple[TakenByOther, ...]:
    return tuple(
        TakenByOther(interval, position, bool(made_from(replace(wanted, interval=interval), ledger)))
        for interval, position in taken.items()
        if interval != wanted.interval and isinstance(position, VersionsRead)
    )


def _chosen(
    wanted: Retake, from_version: int, uri: str, table: TableFiles, claims: tuple[TakenByOther, ...]
) -> tuple[tuple[SourceFile, ...], tuple[str, ...]]:
    """The files to take, with paths below the table, and the intervals that give up what they had taken."""
    begin = commit_versions(uri)[0]
    if from_version > table.version or 0 < from_version < begin:
        known = f"0, or {max(begin, 1)} to {table.version}"
        raise refused(wanted, f"--from-version is {from_version}; allowed: {known}, which the table's log tells of")
    start = max(begin, from_version)
    lineage = Lineage(read_commits(uri, range(start, table.version + 1)))
    now = {below_table(uri, file).path: file for file in table.files}
    others = now.keys() - frozenset[str]().union(*(block.files for block in lineage.blocks))
    try:
        paths, gave_up = RowsToTake(lineage, others, start=start, wanted=from_version, claims=claims).take()
    except RowsMixed as mixed:
        ways = (
            "Delete the intervals that published some (`stagehold intervals delete`), so that what they took is taken "
            "along; or begin with an earlier version"
        )
        raise refused(wanted, f"rows cannot be told apart: {mixed}. {ways}") from mixed
    if gone := gone_files(uri, [now[path] for path in paths]):
        raise refused(wanted, f"the table itself cannot be read: {gone[0].path} is gone")
    return tuple(sorted(below_table(uri, now[path]) for path in paths)), tuple(sorted(gave_up))


def _record(
    wanted: Retake, taken: Mapping[str, Position], after: VersionsRead, gave_up: tuple[str, ...], ledger: Ledger
) -> None:
    who = f"retake by {getpass.getuser()}"
    others = {interval: position for interval, position in taken.items() if interval != wanted.interval}

    def choose(known: Mapping[str, Position]) -> Position:
        if dict(known) != others:
            raise refused(wanted, "another interval has taken something meanwhile; ask again")
        return after

    with ledger.together():
        ledger.positions.take_again(wanted.cell, who, choose)
        for interval in gave_up:
            cell, nothing = replace(wanted, interval=interval).cell, VersionsRead(after.version, after.version)
            ledger.positions.exchange(cell, who, taken[interval], nothing)
