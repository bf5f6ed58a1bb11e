"""Copies of the newest files that this worker has put into the lake, on a disk of its own: what the lake has lost, or
has otherwise, is put back from them in place of being computed again.

A file of the lake is written once and never changed, so its copy is known by its table and path; the copy's name has
the checksum of its content. A copy that is not whole is passed over, with the reason. What does not fit the limit goes,
the oldest first. Several processes may share the folder.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from stagehold.lake.available import missing_files, sizes_now
from stagehold.lake.store.files import files_at
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell, DataFile, PartitionRecord
from stagehold.settings import Settings

MEGABYTE = 1024 * 1024
DRAFT, DRAFT_SECONDS = ".draft", 3600.0  # behind that, who wrote it has died
Tell = Callable[[str], None]
PutBack = Callable[[Sequence[PartitionRecord]], None]


@dataclass(frozen=True)
class LocalCopies:
    folder: Path
    most_bytes: int
    reads_only: Callable[[str], bool] = lambda _: False

    @staticmethod
    def of(settings: Settings) -> LocalCopies | None:
        """None if the worker keeps none."""
        if not settings.local_state:
            return None
        limit = settings.local_state_megabytes * MEGABYTE
        return LocalCopies(Path(settings.local_state), limit, settings.reads_only)

    @staticmethod
    def putting_back(settings: Settings, tell: Tell) -> PutBack:
        """What puts back what it can, before somebody looks whether it is there."""
        copies = LocalCopies.of(settings)
        return partial(copies.put_back, tell=tell) if copies else lambda _: None

    def keep(self, records: Sequence[PartitionRecord], tell: Tell) -> None:
        """Copy what was recorded just now. A disk that is full, or a lake that does not answer, costs the copies and
        nothing else.
        """
        try:
            for record in records:
                for file in record.all_files:
                    if file.bytes <= self.most_bytes and self._copy(record.table, file) is None:
                        self._write(record.table, file, files_at(record.table).read(file.path))
            self._make_room()
        except Exception as error:  # noqa: BLE001 - whatever a store raises
            tell(f"no local copy of {_named(records)}: {error or type(error).__name__}")

    def put_back(self, records: Sequence[PartitionRecord], tell: Tell) -> None:
        """Put back the files of these partitions that the lake has no more, or with another size. It is asked once for
        all files of an attempt.
        """
        of_cells: dict[Cell, list[PartitionRecord]] = defaultdict(list)
        for record in records:
            of_cells[record.cell].append(record)
        lost = {cell: missing_files(found) for cell, found in of_cells.items()}
        put = []
        for record in (each for each in records if each.partition in lost[each.cell]):
            there = sizes_now(record)
            if self._put(record, [file for file in record.all_files if there[file.path] != file.bytes], tell):
                put.append(record)
        _tell_of(put, tell)

    def repair(self, records: Sequence[PartitionRecord], tell: Tell) -> bool:
        """Put back those files of partitions whose content is not what was recorded; whether anything was put back."""
        put = [record for record in records if self._put(record, [*self._other(record)], tell)]
        _tell_of(put, tell)
        return bool(put)

    def _other(self, record: PartitionRecord) -> Iterator[DataFile]:
        for file in record.all_files:
            copy, now = self._copy(record.table, file), None
            with suppress(FileNotFoundError):
                now = files_at(record.table).read(file.path)
            if copy and (now is None or hashlib.sha256(now).hexdigest() != copy.suffix[1:]):
                yield file

    def _put(self, record: PartitionRecord, files: Sequence[DataFile], tell: Tell) -> bool:
        """Put these files back, all or none, so that a partition is never half its own."""
        if not files or self.reads_only(record.table):
            return False
        contents = {file.path: self._content(record.table, file) for file in files}
        if refused := next((why for _, why in contents.values() if why), None):
            tell(f"{_named([record])}: {refused}, so this worker's copy is passed over")
            return False
        lake = files_at(record.table)
        for path, (content, _) in contents.items():
            lake.remove([path])
            lake.create(path, content)
        return True

    def _content(self, table: str, file: DataFile) -> tuple[bytes, str | None]:
        """The content of a copy, or why it is none."""
        copy = self._copy(table, file)
        if copy is None:
            return b"", f"{file.path} is gone, and there is no copy of it"
        with suppress(FileNotFoundError):
            content = copy.read_bytes()
            if len(content) != file.bytes or hashlib.sha256(content).hexdigest() != copy.suffix[1:]:
                copy.unlink(missing_ok=True)
                return b"", f"{file.path} is gone, and the copy of it is not what it was"
            os.utime(copy)
            return content, None
        return b"", f"{file.path} is gone, and the copy of it went just now"

    def _copy(self, table: str, file: DataFile) -> Path | None:
        place = self._place(table, file)
        return next((found for found in place.parent.glob(f"{place.name}.*") if found.suffix != DRAFT), None)

    def _place(self, table: str, file: DataFile) -> Path:
        name = hashlib.sha256(f"{table}\n{file.path}".encode()).hexdigest()
        return self.folder / name[:2] / name

    def _write(self, table: str, file: DataFile, content: bytes) -> None:
        place = self._place(table, file)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{uuid4().hex}{DRAFT}")
        try:
            draft.write_bytes(content)
            draft.replace(place.with_name(f"{place.name}.{hashlib.sha256(content).hexdigest()}"))
        finally:
            draft.unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Delete what is over the limit, and what was never finished."""
        found = [(path, status) for path in self.folder.glob("*/*") if (status := _status(path))]
        drafts = [
            path for path, status in found if path.suffix == DRAFT and status.st_mtime < time.time() - DRAFT_SECONDS
        ]
        left, over = self.most_bytes, []
        for path, status in sorted(found, key=lambda each: each[1].st_mtime, reverse=True):
            left -= status.st_size
            if left < 0 and path.suffix != DRAFT:
                over.append(path)
        for path in (*drafts, *over):
            path.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """None for a file that another process has deleted since."""
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def _tell_of(put: Sequence[PartitionRecord], tell: Tell) -> None:
    if put:
        tell(f"{_named(put)}: the lake had lost it or had it otherwise; put back from this worker's copy")


def _named(records: Sequence[PartitionRecord]) -> str:
    stages = dict.fromkeys(record.cell.stage for record in records)
    return ", ".join(
        f"{stage}[{PartitionSet(record.partition for record in records if record.cell.stage == stage)}]"
        for stage in stages
    )
