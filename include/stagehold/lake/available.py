"""Asks the lake whether recorded partitions can still be read now. Needs no Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from stagehold.lake.commit.delta_log import COMMIT_FILE, LOG_FOLDER
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.tokens import CHECKPOINT
from stagehold.lake.store.files import files_at
from stagehold.model.records import PartitionRecord


def missing_data(records: Sequence[PartitionRecord]) -> frozenset[int]:
    """The partitions of ``records`` whose table version, or whose very files, are gone; in tables that stages own.

    A lost log file's version number may since have been given to another commit. That does no harm here, since readers
    read the recorded files.
    """
    without_version = (
        partition for table, table_records in _by_table(records) for partition in _without_version(table, table_records)
    )
    return missing_files(records) | frozenset(without_version)


def missing_files(records: Sequence[PartitionRecord]) -> frozenset[int]:
    """Partitions of ``records`` whose files are gone or of another size.

    Lists each attempt's files once, or the partition's where delta-spark wrote them; opens none of them.
    """
    return frozenset(
        partition for table, table_records in _by_table(records) for partition in _without_files(table, table_records)
    )


def sizes_now(record: PartitionRecord) -> Mapping[str, int | None]:
    """The present bytes of each recorded file; None for a file that is gone."""
    present = present_files(record.table, (file.path for file in record.all_files))
    return {file.path: present.get(file.path) for file in record.all_files}


def present_files(table: str, paths: Iterable[str]) -> Mapping[str, int]:
    """The bytes of those of these files of a table that still exist."""
    wanted = frozenset(paths)
    return {path: size for path, size in _present(table, set(map(_folder, wanted))).items() if path in wanted}


def readable_versions(log_files: Iterable[str]) -> Collection[int]:
    """Versions that this log can still be replayed to: from the start, or a checkpoint, without a gap."""
    names = list(log_files)
    commits = {int(match[1]) for match in map(COMMIT_FILE.fullmatch, names) if match}
    checkpoints = {int(match[1]) for match in map(CHECKPOINT.fullmatch, names) if match}
    readable: set[int] = set()
    for version in sorted(commits | checkpoints):
        if version in checkpoints or (version in commits and (version == 0 or version - 1 in readable)):
            readable.add(version)
    return readable


def _by_table(records: Sequence[PartitionRecord]) -> Iterable[tuple[str, Sequence[PartitionRecord]]]:
    return (
        (table, [record for record in records if record.table == table])
        for table in {record.table for record in records}
    )


def _without_version(table: str, records: Sequence[PartitionRecord]) -> Iterable[int]:
    versions = readable_versions(files_at(table).sizes(LOG_FOLDER))
    return (record.partition for record in records if record.version not in versions)


def _without_files(table: str, records: Sequence[PartitionRecord]) -> Iterable[int]:
    present = _present(table, {_folder(file.path) for record in records for file in record.all_files})
    return (
        record.partition for record in records if any(present.get(file.path) != file.bytes for file in record.all_files)
    )


def _present(table: str, folders: Collection[str]) -> Mapping[str, int]:
    return {path: size for folder in folders for path, size in files_at(table).sizes(folder).items()}


def _folder(path: str) -> str:
    """The folder to list to see a file: its attempt's, or that of its first partition value if delta-spark wrote it."""
    first, second, *_ = path.split("/")
    return f"{first}/{second}" if first == DATA_FOLDER else first
