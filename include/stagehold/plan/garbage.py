"""Which recorded files of one stage and interval are no longer needed, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby

from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState


class Why(StrEnum):
    """Why something may be deleted."""

    RELEASED = "released"  # nothing that runs reads it
    SUPERSEDED = "superseded"  # its partition was computed again since
    REFUSED = "refused"  # its gate said no, and its partition was computed again since
    STRAY = "stray"  # an attempt that died left it, and nothing knows of it
    CHECKPOINT = "checkpoint"  # newer ones replaced it, or a newer run of its interval went on


@dataclass(frozen=True)
class Garbage:
    """A file by its path relative to its table."""

    path: str
    bytes: int
    why: Why


def garbage(
    history: Sequence[PartitionRecord], present: Mapping[str, int], needed: Collection[str], older_than: datetime
) -> tuple[Garbage, ...]:
    """The files that may be deleted, of those that are ``present``.

    The newest record of a partition keeps its files, whatever its state, unless it was released; released files are
    deleted whatever their age. All others wait until they have been superseded for long enough, since a reader that
    began before may still read them. Files that no record names are left alone here.

    :param history: every record of one stage and interval, oldest first.
    :param present: sizes of the files that are there.
    :param needed: files that a checkpoint or a published table's snapshot points to.
    """
    by_partition = sorted(history, key=lambda record: record.partition)  # stable: still oldest first
    return tuple(
        found
        for _, records in groupby(by_partition, key=lambda record: record.partition)
        for found in _of_partition(list(records), present, needed, older_than)
    )


def may_have_garbage(history: Sequence[PartitionRecord]) -> bool:
    """Whether it is worth a look at the files."""
    newest = {record.partition: record for record in history}
    return len(newest) < len(history) or any(record.state is PartitionState.RELEASED for record in newest.values())


def _of_partition(
    records: Sequence[PartitionRecord], present: Mapping[str, int], needed: Collection[str], older_than: datetime
) -> Iterator[Garbage]:
    for path, place in _last_named(records).items():
        if path in present and path not in needed and (why := _why(records, place, older_than)):
            yield Garbage(path, present[path], why)


def _last_named(records: Sequence[PartitionRecord]) -> Mapping[str, int]:
    """The last record that names each file: a later record about the same data names the same files again."""
    return {file.path: place for place, record in enumerate(records) for file in record.all_files}


def _why(records: Sequence[PartitionRecord], place: int, older_than: datetime) -> Why | None:
    record, following = records[place], records[place + 1 : place + 2]
    if following and following[0].state is PartitionState.RELEASED:
        return Why.RELEASED
    if not following or following[0].recorded_at >= older_than:
        return None
    return Why.REFUSED if record.state is PartitionState.BLOCKED else Why.SUPERSEDED
