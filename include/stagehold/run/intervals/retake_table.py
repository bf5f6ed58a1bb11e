"""Has an interval take of an incremental Delta table what is there now, after what it had taken is gone."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from stagehold.lake.commit.delta_log import commit_versions, read_commits
from stagehold.ledger.ledger import Ledger
from stagehold.model.source_position import FilesFound, Position, SourceFile, VersionsRead
from stagehold.run.intervals.retake import Retake, made_from, refused, roots_of
from stagehold.settings import Settings
from stagehold.sources.delta import TableFiles, below_table, files_of_version, gone_files
from stagehold.sources.lineage import Lineage
from stagehold.sources.there_now import RowsMixed, TakenByOther, ThereNow
from stagehold.spec.settings.source import SourceKind


@dataclass(frozen=True)
class TableRetake:
    """What the interval takes now, and the intervals that ``gave_up`` what they had taken and published nothing of."""

    before: VersionsRead
    after: VersionsRead
    bytes: int
    gave_up: tuple[str, ...]

    @property
    def left_out(self) -> str | None:
        """What of the versions that it had taken nobody takes any more."""
        first, last = self.before.first, min(self.after.first - 1, self.before.version)
        return f"versions {first} to {last}" if first <= last else None


def retake_table(
    wanted: Retake, from_version: int, ledger: Ledger, settings: Settings, *, dry_run: bool
) -> TableRetake:
    """All that the table has now of what its versions from ``from_version`` on brought, but what others published.

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
        _refuse_published(wanted, ledger)
        table = files_of_version(wanted.stage.name, uri, None)
        files, gave_up = _chosen(wanted, from_version, uri, table, _claims(wanted, taken, ledger))
        after = VersionsRead(
            from_version - 1 if from_version else None,
            max(table.version, before.version),
            FilesFound(table.version, files, table.schema),
        )
        for interval in gave_up:
            leases.enter_context(replace(wanted, interval=interval).lease(ledger, settings))
            _refuse_published(replace(wanted, interval=interval), ledger)
        if not dry_run:
            _record(wanted, taken, after, gave_up, ledger)
    return TableRetake(before, after, sum(one.bytes for one in files), gave_up)


def _table_of(wanted: Retake, settings: Settings) -> str:
    source = wanted.stage.source
    if source is None or not source.incremental or source.kind is not SourceKind.DELTA:
        raise refused(wanted, "--from-version is for incremental Delta tables, and it reads none")
    return roots_of(settings).address(source.path or "")


def _refuse_published(wanted: Retake, ledger: Ledger) -> None:
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
    """The files to take, as they are called from the table, and who gives up what it had taken."""
    begin = commit_versions(uri)[0]
    if from_version > table.version or 0 < from_version < begin:
        known = f"0, or {max(begin, 1)} to {table.version}"
        raise refused(wanted, f"--from-version is {from_version}; allowed: {known}, which the table's log tells of")
    start = max(begin, from_version)
    lineage = Lineage.of(read_commits(uri, range(start, table.version + 1)))
    now = {below_table(uri, file).path: file for file in table.files}
    others = now.keys() - frozenset[str]().union(*(block.files for block in lineage.blocks))
    try:
        paths, gave_up = ThereNow(lineage, others, start, from_version, claims).take()
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
