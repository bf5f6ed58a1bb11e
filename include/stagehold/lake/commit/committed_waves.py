"""What a table's log says of the waves that were committed to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from stagehold.errors import Fenced
from stagehold.lake.commit.delta_log import (
    LogEntry,
    commit_versions,
    newest_commits,
    open_table,
    read_commit,
    read_commits,
)
from stagehold.lake.commit.wave_commit import (
    CommittedPartition,
    WaveCommit,
    epoch_of,
    from_any_cell,
    from_metadata,
    without_files,
)
from stagehold.lake.store.columns import PARTITION
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import DataFile

FEW = 10  # newest commits among which one's own nearly always is
RECENT = 200  # commits looked through for what could not be recorded; what is further back is computed again


class Landed(NamedTuple):
    """A wave in the log: the version that holds it, and its partitions with the files where readers find them."""

    version: int
    commit: WaveCommit

    @property
    def files(self) -> Mapping[int, tuple[DataFile, ...]]:
        return {partition.partition: partition.files for partition in self.commit.partitions}


def committed(location: TableLocation, limit: int | None = RECENT) -> tuple[Landed, ...]:
    """What the log says of each partition of this share, published or retracted: each commit with just the partitions
    for which it is the newest.

    The commits may have been made for any share. Oldest first. Reads only log files, the newest ``limit`` of them.
    """
    seen: set[int] = set()
    live: list[Landed] = []
    for version, commit, entry in _of_cell(newest_commits(location.uri, limit), location.cell):
        newest = _unseen(commit, entry, seen)
        if newest.partitions or newest.retracted:
            live.insert(0, Landed(version, newest))
    return tuple(live)


def committed_intervals(uri: str, prefix: str) -> Mapping[str, tuple[Landed, ...]]:
    """What the whole log says of each partition, by interval, for all intervals whose cells begin with ``prefix``."""
    seen: dict[str, set[int]] = defaultdict(set)
    live: dict[str, list[Landed]] = defaultdict(list)
    for entry in read_commits(uri, commit_versions(uri)[::-1]):
        found = from_any_cell(entry.user_metadata, prefix)
        if found:
            interval, commit = found
            newest = _unseen(commit, entry, seen[interval])
            if newest.partitions:
                live[interval].insert(0, Landed(entry.version, newest))
    return {interval: tuple(waves) for interval, waves in live.items()}


def _unseen(commit: WaveCommit, entry: LogEntry, seen: set[int]) -> WaveCommit:
    """The commit with those of its partitions that no newer one has. From now on they count as ``seen``, and so do
    partitions that it took out without naming them, as when an interval is deleted.
    """
    whole = _with_files(commit, entry)
    newest = tuple(partition for partition in whole.partitions if partition.partition not in seen)
    retracted = tuple(partition for partition in commit.retracted if partition not in seen)
    taken_out = (int(file.partition[PARTITION] or 0) for file in entry.removed if PARTITION in file.partition)
    seen.update((*(partition.partition for partition in newest), *retracted, *taken_out))
    return replace(commit, partitions=newest, retracted=retracted)


def read_back(location: TableLocation, commit: WaveCommit, likely: int | None = None) -> Landed:
    """The wave as it landed.

    The token only says that this wave, or a later one of the same attempt, landed. Only the log can say that it was
    this one, with these partitions, fingerprints and files.

    :param likely: the version that it has unless others committed meanwhile; it is looked at first.
    :raises Fenced: it is not in the log, so the token is from the commit of another attempt.
    """
    whole = replace(commit, positions=())
    said = (whole, without_files(whole))  # the second is what delta-spark's commits say
    for entries in (_this(location.uri, likely), *(newest_commits(location.uri, limit) for limit in (FEW, RECENT))):
        for version, found, entry in _of_cell(entries, location.cell):
            if replace(found, positions=()) in said:
                return Landed(version, _with_files(found, entry))
    newest = open_table(location.uri).transaction_version(location.token) or 0
    raise Fenced(location.token, commit.epoch, epoch_of(newest), told_by=location.uri)


def _this(uri: str, version: int | None) -> Iterator[LogEntry]:
    with suppress(FileNotFoundError):
        if version is not None:
            yield read_commit(uri, version)


def _of_cell(entries: Iterable[LogEntry], cell: str) -> Iterator[tuple[int, WaveCommit, LogEntry]]:
    """The commits of a stage and interval, as their metadata tells."""
    for entry in entries:
        commit = from_metadata(entry.user_metadata, cell)
        if commit:
            yield entry.version, commit, entry


def _with_files(commit: WaveCommit, entry: LogEntry) -> WaveCommit:
    """The commit with its files: delta-spark cannot name them beforehand, so they are those its log entry added."""
    if not any(partition.rows and not partition.files for partition in commit.partitions):
        return commit
    files: dict[str | None, list[DataFile]] = defaultdict(list)
    for added in entry.added:
        files[added.partition[PARTITION]].append(added.file)
    return replace(
        commit, partitions=tuple(_filled(partition, files[str(partition.partition)]) for partition in commit.partitions)
    )


def _filled(partition: CommittedPartition, files: list[DataFile]) -> CommittedPartition:
    return replace(partition, files=tuple(sorted(files, key=lambda file: file.path)))
