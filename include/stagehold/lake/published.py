"""Asks a published table whether it still holds what was recorded of it, and if not, who took it out.

The current snapshot decides, not the number of a version: a number is given again after its log file is lost. The files
of a partition may have been rewritten by a commit that changes no rows, as OPTIMIZE does; then its rows are looked for
where that commit put them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from stagehold.errors import TableUnreadable
from stagehold.lake.commit.delta_log import (
    AddedFile,
    LogEntry,
    RemovedFile,
    commit_versions,
    open_table,
    read_commits,
    table_exists,
)
from stagehold.lake.commit.wave_commit import is_ours, is_wave_of
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from deltalake import DeltaTable

Paths = frozenset[str]
DELETION_VECTORS = "deletionVectors"


@dataclass(frozen=True)
class Absences:
    """Recorded partitions that are not, or not wholly, in their table.

    ``removed`` are those that a commit of somebody else took out, ``lost`` the rest.
    """

    lost: frozenset[int] = frozenset()
    removed: Mapping[int, ForeignChange] = field(default_factory=dict)


def absences(records: Sequence[PartitionRecord]) -> Absences:
    """Which partitions of a published stage's interval are not in their table now. The ``records`` are all consumable.

    Reads the snapshot of the table once. Only if something is missing are commits read: those since the oldest record
    of what is missing.
    """
    found = [
        _absences_in(uri, [record for record in records if record.table == uri])
        for uri in {record.table for record in records}
    ]
    lost = frozenset[int]().union(*(in_table.lost for in_table in found))
    return Absences(lost, {partition: change for in_table in found for partition, change in in_table.removed.items()})


def _absences_in(uri: str, records: Sequence[PartitionRecord]) -> Absences:
    live = live_files(uri, records[0].cell.interval)
    if live is None:
        return Absences(frozenset(record.partition for record in records))
    incomplete = [record for record in records if not _is_whole(record, live.get(record.partition, frozenset()))]
    return _explained(uri, incomplete, live) if incomplete else Absences()


def _is_whole(record: PartitionRecord, live: Paths) -> bool:
    """Somebody may have added files beside ours. A partition without rows has none, or they are looked at."""
    return {file.path for file in record.files} <= live if record.files else not live


def files_of_snapshot(uri: str) -> Paths:
    """All files that the current snapshot points to, even if some of their rows were deleted; none without a table.

    :raises TableUnreadable: the files cannot be told.
    """
    from deltalake.exceptions import DeltaError

    if not table_exists(uri):
        return frozenset()
    try:
        files = open_table(uri).get_add_actions(flatten=True)
    except DeltaError as error:
        raise TableUnreadable(uri, str(error)) from error
    return frozenset(map(unquote, files.column("path").to_pylist()))


def shows_rows(uri: str, interval: str | None) -> bool:
    """Whether the current snapshot points to files of an interval, whoever added them; None for a table that has no
    other interval.
    """
    return table_exists(uri) and any(partition.get(INTERVAL) == interval for partition in open_table(uri).partitions())


def live_files(uri: str, interval: str) -> Mapping[int, Paths] | None:
    """Files of the current snapshot by partition, but none with deleted rows; None if it cannot be read.

    Every plan asks this, so it does without PyArrow, which brings pandas along when it is given a Python value.
    """
    from deltalake.exceptions import DeltaError

    if not table_exists(uri):
        return None
    try:
        table = open_table(uri)
    except DeltaError:
        return None
    marked = _marked(table) if DELETION_VECTORS in (table.protocol().reader_features or ()) else frozenset()
    files = table.get_add_actions(flatten=True)
    columns = ("path", f"partition.{INTERVAL}", f"partition.{PARTITION}")
    found: dict[int, set[str]] = defaultdict(set)
    for path, of_interval, partition in zip(*(files.column(name).to_pylist() for name in columns), strict=True):
        if of_interval == interval and not any(name.endswith(unquote(path)) for name in marked):
            found[int(partition)].add(unquote(path))
    return {partition: frozenset(paths) for partition, paths in found.items()}


def _marked(table: DeltaTable) -> Paths:
    import pyarrow as pa  # type: ignore[import-untyped]

    return frozenset(unquote(str(name)) for name in pa.table(table.deletion_vectors())["filepath"])


class _PartitionTrace:
    """Follows the rows of one partition from the commit of its record to the present."""

    def __init__(self, record: PartitionRecord) -> None:
        self.record = record
        self.committed: bool | None = None  # whether the record's commit is in the log; None if that was cleaned up
        self.places = [frozenset(file.path for file in record.files)]  # where the rows have been, the last one last
        self.change: LogEntry | None = None
        # the first commit of somebody else that took out rows of the partition, whosever they were
        self.foreign_removal: LogEntry | None = None
        self._missing: Paths = frozenset()

    def see(self, entry: LogEntry) -> None:
        if entry.version >= (self.record.version or 0) and self._is_foreign_removal(entry):
            self.foreign_removal = self.foreign_removal or entry
        if entry.version == self.record.version:
            self.committed = is_wave_of(entry.user_metadata, self.record.attempt_id, self.record.wave)
        elif entry.version > (self.record.version or 0):
            self._follow(entry)

    def _follow(self, entry: LogEntry) -> None:
        removed = {file.path: file.data_change for file in entry.removed}
        hit = self.places[-1] & removed.keys()
        added = {file.file.path: file for file in entry.added if self._is_mine(file)}
        if hit and not any(removed[path] for path in hit):
            self.places.append(self.places[-1] - hit | {path for path, file in added.items() if not file.data_change})
        elif hit:
            self.change, self._missing = self.change or entry, self._missing | hit
        elif self._replaces_nothing(entry, added.keys()):
            self.change = self.change or entry
        self._missing -= added.keys()
        if self.places[0] and not self._missing:
            self.change = None  # all that was removed was put back

    def _is_foreign_removal(self, entry: LogEntry) -> bool:
        return not is_ours(entry.user_metadata) and any(
            file.data_change and self._is_mine(file) for file in entry.removed
        )

    def _is_mine(self, file: AddedFile | RemovedFile) -> bool:
        place = (file.partition.get(INTERVAL), file.partition.get(PARTITION))
        return place == (self.record.cell.interval, str(self.record.partition))

    def _replaces_nothing(self, entry: LogEntry, added: Iterable[str]) -> bool:
        """A newer wave of ours filled a partition that had no rows."""
        return not self.places[0] and any(added) and is_ours(entry.user_metadata)


def _explained(uri: str, incomplete: Sequence[PartitionRecord], live: Mapping[int, Paths]) -> Absences:
    traces = [_PartitionTrace(record) for record in incomplete]
    oldest = min(record.version or 0 for record in incomplete)
    versions = [version for version in commit_versions(uri) if version >= oldest]
    for entry in read_commits(uri, versions):
        for trace in traces:
            trace.see(entry)
    lost, removed = set[int](), dict[int, ForeignChange]()
    for trace in traces:
        partition = trace.record.partition
        verdict = _verdict(trace, live.get(partition, frozenset()), versions)
        if isinstance(verdict, ForeignChange):
            removed[partition] = verdict
        elif verdict:
            lost.add(partition)
    return Absences(frozenset(lost), removed)


def _verdict(trace: _PartitionTrace, live: Paths, versions: Sequence[int]) -> ForeignChange | bool:
    """Whether the partition is lost, or who removed it."""
    newest = max(versions, default=-1)
    if trace.committed is False or newest < (trace.record.version or 0):
        # Its commit is not in the log: that file was lost, and another commit may have its number. What somebody else
        # took out of the partition since was what an older wave had left there, and may have been meant for all that is
        # in it.
        return _foreign(trace.foreign_removal) if trace.foreign_removal else True
    if any(place and place <= live for place in trace.places):
        return False
    if trace.change is not None:
        return True if is_ours(trace.change.user_metadata) else _foreign(trace.change)
    if not trace.record.files:
        return False  # what is in it was added by others
    complete = (
        len([version for version in versions if version >= (trace.record.version or 0)])
        == newest - (trace.record.version or 0) + 1
    )
    return True if complete else ForeignChange(None)


def _foreign(entry: LogEntry) -> ForeignChange:
    return ForeignChange(entry.version, entry.operation, entry.who, entry.at)
