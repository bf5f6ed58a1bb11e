"""Asks the lake, now, whether recorded partitions can still be read. Spark is not needed for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from stagehold.lake.delta_log import COMMIT_FILE, LOG_FOLDER
from stagehold.lake.files import files_at
from stagehold.lake.staging import DATA_FOLDER
from stagehold.model.records import PartitionRecord

CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(\..+)?\.parquet")


def missing_data(records: Sequence[PartitionRecord]) -> frozenset[int]:
    """Partitions of ``records`` whose recorded version is gone from the log, or whose files are gone or of another size.

    Lists the log once per table and each attempt's files once, or the partition's where delta-spark wrote them; opens none of them.
    """
    return frozenset(
        partition
        for table in {record.table for record in records}
        for partition in _missing_in(table, [record for record in records if record.table == table])
    )


def readable_versions(log_files: Iterable[str]) -> Collection[int]:
    """Versions that a log with these files can still be replayed to: from the start or a checkpoint on without a gap."""
    names = list(log_files)
    commits = {int(match[1]) for match in map(COMMIT_FILE.fullmatch, names) if match}
    checkpoints = {int(match[1]) for match in map(CHECKPOINT.fullmatch, names) if match}
    readable: set[int] = set()
    for version in sorted(commits | checkpoints):
        if version in checkpoints or (version in commits and (version == 0 or version - 1 in readable)):
            readable.add(version)
    return readable


def _missing_in(table: str, records: Sequence[PartitionRecord]) -> Iterable[int]:
    versions = readable_versions(files_at(table).sizes(LOG_FOLDER))
    present = _present(table, {_folder(file.path) for record in records for file in record.files})
    for record in records:
        if record.version not in versions or any(present.get(file.path) != file.bytes for file in record.files):
            yield record.partition


def _present(table: str, folders: Collection[str]) -> Mapping[str, int]:
    return {path: size for folder in folders for path, size in files_at(table).sizes(folder).items()}


def _folder(path: str) -> str:
    """What to list to see a file: its attempt's folder; that of its first partition value if delta-spark wrote it."""
    first, second, *_ = path.split("/")
    return f"{first}/{second}" if first == DATA_FOLDER else first
