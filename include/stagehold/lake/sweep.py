"""Finds and deletes what dead attempts left below `_data` of a table: files that nothing knows of and nobody reads.

Deleting by attempt is safe once the attempt is fenced: it can publish nothing more, so a file that no record and no
commit knows of then will never be known. Other folders, other tables and files of users are never looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from stagehold.lake.commit.delta_log import newest_commits, table_exists
from stagehold.lake.commit.staging import DATA_FOLDER, VERDICTS_FOLDER
from stagehold.lake.published import files_of_snapshot
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.model.records import PartitionRecord

DEPTHS = (2, 3, 4)  # _data/<attempt>, then its waves, then their partitions


@dataclass(frozen=True)
class StrayFolder:
    """A folder of the table at ``uri`` that may be deleted with everything in it."""

    uri: str
    folder: str
    files: int
    bytes: int

    @property
    def attempt_id(self) -> str:
        return self.folder.split("/")[1]


def find_strays(
    uri: str, dead: Collection[str], records: Iterable[PartitionRecord], older_than: datetime
) -> tuple[StrayFolder, ...]:
    """The folders that may be deleted. Costs one listing per attempt; the log of the table is read only when there is
    such a folder.

    :param dead: ids of attempts that are fenced.
    :param records: all that there ever were of the stage and interval; those of others lie in folders of other
        attempts.
    """
    files, recorded = files_at(uri), recorded_files(records)
    present = {path: facts for attempt in dead for path, facts in files.facts(f"{DATA_FOLDER}/{attempt}").items()}
    if not removable_folders(uri, present, dead, recorded, older_than):
        return ()
    committed = committed_files(uri)
    kept = recorded | committed | _verdicts_to_record(present, committed - recorded)
    return removable_folders(uri, present, dead, kept, older_than)


def _verdicts_to_record(present: Iterable[str], unrecorded: Iterable[str]) -> frozenset[str]:
    """What gates said of waves that an attempt of another share may still take over."""
    waves = {_folder(path, 3) for path in unrecorded}
    return frozenset(path for path in present if f"/{VERDICTS_FOLDER}/" in path and _folder(path, 3) in waves)


def removable_folders(
    uri: str, present: Mapping[str, FileFacts], dead: Collection[str], kept: Collection[str], older_than: datetime
) -> tuple[StrayFolder, ...]:
    """The largest folders of dead attempts in which no file is ``kept`` and all are older."""
    attempts = {f"{DATA_FOLDER}/{attempt}" for attempt in dead}
    stays = frozenset(path for path, file in present.items() if path in kept or file.modified >= older_than)
    return tuple(
        _within(uri, {path: file for path, file in present.items() if _folder(path, 2) in attempts}, stays, DEPTHS)
    )


def recorded_files(records: Iterable[PartitionRecord]) -> frozenset[str]:
    """The files that the ledger may still point somebody to. Of what a gate blocks or holds, only the newest."""
    every = list(records)
    newest = {record.partition: record for record in sorted(every, key=lambda record: (record.epoch, record.wave))}
    return frozenset(
        file.path
        for record in every
        if not record.state.kept_back or record == newest[record.partition]
        for file in record.all_files
    )


def committed_files(uri: str) -> frozenset[str]:
    """The files that any version of the table ever held, as far back as its log goes."""
    if not table_exists(uri):
        return frozenset()
    logged = (
        path
        for entry in newest_commits(uri, None)
        for path in (*(file.path for file in entry.removed), *(file.file.path for file in entry.added))
    )
    return files_of_snapshot(uri) | frozenset(logged)


def remove(strays: Iterable[StrayFolder]) -> None:
    """Delete them. After a crash in the middle the rest is left for the next time."""
    for stray in strays:
        files_at(stray.uri).delete(stray.folder)


def _within(
    uri: str, files: Mapping[str, FileFacts], stays: frozenset[str], depths: tuple[int, ...]
) -> Iterator[StrayFolder]:
    depth, *deeper = depths
    folders: dict[str, dict[str, FileFacts]] = defaultdict(dict)
    for path, file in files.items():
        if path.count("/") >= depth:
            folders[_folder(path, depth)][path] = file
    for folder, inside in sorted(folders.items()):
        if stays.isdisjoint(inside):
            yield StrayFolder(uri, folder, len(inside), sum(file.bytes for file in inside.values()))
        elif deeper:
            yield from _within(uri, inside, stays, tuple(deeper))


def _folder(path: str, depth: int) -> str:
    return "/".join(path.split("/")[:depth])
