"""Copies files within a lake or between two, as they are, and says what their content is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from stagehold.errors import CopyRefused
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.store.columns import PARTITION
from stagehold.lake.store.files import Files, files_at
from stagehold.model.records import DataFile, PartitionRecord

AT_ONCE = 4  # files, each of which is in memory as a whole


def copy_files(
    source: Files, target: Files, paths: Mapping[str, str], copied: Callable[[int], object] = lambda size: size
) -> Mapping[str, str]:
    """Copy each file from its path in ``source`` to its path in ``target``; gives the SHA-256 of each by its path in
    the target.

    A file that is already there with the same content is left alone, so a copy that died in the middle may be repeated.

    :param copied: is called with the bytes of each file once the file is there.
    :raises FileNotFoundError: one of them is gone.
    :raises CopyRefused: a different file is in its place.
    """

    def copy(pair: tuple[str, str]) -> str:
        content = source.read(pair[0])
        if not target.create(pair[1], content) and target.read(pair[1]) != content:
            raise CopyRefused(pair[1])
        copied(len(content))
        return hashlib.sha256(content).hexdigest()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(paths.values(), pool.map(copy, paths.items()), strict=True))


def copied_for(record: PartitionRecord, uri: str, attempt_id: str) -> PartitionRecord:
    """The record with copies of its files in the table at ``uri``, below the folder that the attempt wrote to. Nothing
    refers to the copies yet.
    """
    folder = f"{DATA_FOLDER}/{attempt_id}/{record.written_by.replace('/', '.')}"
    paths = {file.path: _path(folder, record.partition, file) for file in record.all_files}
    copy_files(files_at(record.table), files_at(uri), paths)
    kept = tuple(replace(part, files=_moved(part.files, paths)) for part in record.kept)
    return replace(record, files=_moved(record.files, paths), kept=kept)


def _path(folder: str, partition: int, file: DataFile) -> str:
    return f"{folder}/{PARTITION}={partition}/{file.path.rpartition('/')[2]}"


def _moved(files: Sequence[DataFile], paths: Mapping[str, str]) -> tuple[DataFile, ...]:
    return tuple(replace(file, path=paths[file.path]) for file in files)
