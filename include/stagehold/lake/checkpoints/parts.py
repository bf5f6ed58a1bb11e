"""Writes and reads the parts of a run's checkpoints: a stage's partitions, cut into fixed ranges of their numbers.

A part is named by its content and the checkpoint that it was written for. So what no manifest refers to is of a writer
that is at work or dead, and no writer takes another one's file for its own.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.errors import CheckpointCorrupt, CheckpointOvertaken
from stagehold.lake.checkpoints.encoding import RecordedPartition, decode_table, empty_table, encode, records_in
from stagehold.lake.checkpoints.manifest import PARTITIONS_PER_PART, PartReference, StageManifest
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import Files
from stagehold.model.records import GateResult

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]

Rows = Mapping[int, RecordedPartition]  # by partition


class CheckpointParts:
    """The parts in the folder of one run, written or read for checkpoint ``number``. While one is written, those of the
    one that it builds on are read.
    """

    def __init__(self, files: Files, uri: str, number: int, builds_on: int | None = None) -> None:
        self._files, self._uri, self._number = files, uri, number
        self._read = number if builds_on is None else builds_on

    def write(self, changes: StageSnapshot, base: StageManifest | None) -> tuple[PartReference, ...]:
        """References to all of the stage's parts. Those with ``changes`` are read and written, no others."""
        references = {part.first: part for part in base.parts} if base else {}
        changed = _cut(_rows(changes))

        def written(first: int) -> PartReference:
            old = references.get(first)
            before = self._rows_of(changes.shape.id, old, self._verified(old)) if old else ()
            return self._stored(first, {**_by_partition(before), **changed[first]}, old)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            references.update(zip(changed, pool.map(written, changed), strict=True))
        return tuple(references[first] for first in sorted(references))

    def read(self, stage: StageManifest) -> tuple[RecordedPartition, ...]:
        """
        :raises CheckpointCorrupt: a part is gone, or is not what the manifest refers to.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            contents = pool.map(self._verified, stage.parts)
            parts = zip(stage.parts, contents, strict=True)
            return tuple(row for part, content in parts for row in self._rows_of(stage.shape.id, part, content))

    def read_table(self, stage: StageManifest) -> Table:
        """What `read` reads, as columns: for sums over many partitions, which need no record of each.

        :raises CheckpointCorrupt: as `read` does, unless a row is wrong in itself.
        """
        import pyarrow as pa

        def read(part: PartReference) -> Table:
            return self._table(stage.shape.id, part, self._verified(part))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            tables = list(pool.map(read, stage.parts))
        return pa.concat_tables(tables) if tables else empty_table()

    def _stored(self, first: int, rows: Rows, old: PartReference | None) -> PartReference:
        content = encode(rows[partition] for partition in sorted(rows))
        sha256 = hashlib.sha256(content).hexdigest()
        if old is not None and old.sha256 == sha256:
            return old
        part = PartReference(self._number, sha256, len(content), first, len(rows))
        place = f"{self._uri}/{part.file}"
        try:
            # A writer that died may have left it here.
            sound = self._files.create(part.file, content) or self._files.read(part.file) == content
        except FileNotFoundError as error:
            raise CheckpointOvertaken(self._number, place) from error
        if not sound:
            raise CheckpointCorrupt(self._number, f"{place} is there and has other content")
        return part

    def _rows_of(self, stage_id: str, part: PartReference, content: bytes) -> tuple[RecordedPartition, ...]:
        try:
            return records_in(self._table(stage_id, part, content))
        except ValueError as error:
            raise self._corrupt(part, f"is no part of a checkpoint ({error})") from error

    def _table(self, stage_id: str, part: PartReference, content: bytes) -> Table:
        try:
            table = decode_table(content)
        except ValueError as error:
            raise self._corrupt(part, f"is no part of a checkpoint ({error})") from error
        numbers = table["partition"].to_pylist()
        if set(table["stage_id"].unique().to_pylist()) - {stage_id} or not set(numbers) <= set(part.covers):
            raise self._corrupt(part, f"has partitions that are not those of stage {stage_id} from {part.first} on")
        if len(numbers) != part.partitions or numbers != sorted(set(numbers)):
            raise self._corrupt(part, f"does not have {part.partitions} partitions in ascending order")
        return table

    def _verified(self, part: PartReference) -> bytes:
        try:
            content = self._files.read(part.file)
        except FileNotFoundError as error:
            raise self._corrupt(part, "is missing") from error
        if len(content) != part.bytes:
            raise self._corrupt(part, f"has {len(content)} bytes and not {part.bytes}")
        if hashlib.sha256(content).hexdigest() != part.sha256:
            raise self._corrupt(part, "has another content than when it was written")
        return content

    def _corrupt(self, part: PartReference, problem: str) -> CheckpointCorrupt:
        return CheckpointCorrupt(self._read, f"{self._uri}/{part.file} {problem}")


def _rows(stage: StageSnapshot) -> Iterator[RecordedPartition]:
    said: dict[int, list[GateResult]] = defaultdict(list)
    for verdict in stage.verdicts:
        said[verdict.partition].append(verdict)
    return (RecordedPartition(stage.shape.id, record, tuple(said[record.partition])) for record in stage.partitions)


def _by_partition(rows: Iterable[RecordedPartition]) -> Rows:
    return {row.record.partition: row for row in rows}


def _cut(rows: Iterable[RecordedPartition]) -> Mapping[int, Rows]:
    """Rows by the first partition of their part."""
    parts: dict[int, dict[int, RecordedPartition]] = defaultdict(dict)
    for row in rows:
        partition = row.record.partition
        parts[partition - partition % PARTITIONS_PER_PART][partition] = row
    return parts
