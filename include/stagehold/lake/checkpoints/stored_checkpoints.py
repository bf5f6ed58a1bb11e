"""The checkpoints of one run in the lake.

    LAKE/checkpoints/PIPELINE/INTERVAL/RUN/0000000007.json      the manifest of checkpoint 7: it is whole, or not there
    LAKE/checkpoints/PIPELINE/INTERVAL/RUN/parts/NUMBER-SHA256.parquet      partitions, written for checkpoint NUMBER

Files are made once and never changed. A checkpoint exists from the moment its manifest does.

A part has a stage's partitions within a fixed range of their numbers. It is named by its content and the checkpoint
that it was written for. So what no manifest refers to is of a writer that is at work or dead, and no writer takes
another one's file for its own.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.checkpoints.checkpoint import Checkpoint, StageSnapshot
from stagehold.errors import CheckpointCorrupt, CheckpointNumberTaken, CheckpointOvertaken
from stagehold.lake.checkpoints.encoding import (
    RecordedPartition,
    decode_table,
    empty_table,
    encode,
    records_in,
    rows_of_stage,
)
from stagehold.lake.checkpoints.manifest import (
    PARTITIONS_PER_PART,
    CheckpointedRun,
    Manifest,
    PartReference,
    StageManifest,
    decode_manifest,
    encode_manifest,
)
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.lake.checkpoints.relocation import Relocation
from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import Files, files_at
from stagehold.lake.store.location import CHECKPOINTS, checkpoints_of, lake_root
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]

MANIFEST = re.compile(r"(\d{10})\.json")
# A folder's files are made under a name with a dot before it and letters behind it.
PART_OR_DRAFT = re.compile(r"parts/\.?\d{10}-[0-9a-f]{64}\.parquet(\.\w+)?|\.\d{10}\.json\.\w+")


class StoredCheckpoints:
    """Writes, reads and deletes them by number."""

    def __init__(self, lake_uri: str, run: CheckpointedRun, files: Callable[[str], Files] = files_at) -> None:
        self.uri = checkpoints_of(lake_uri, run.pipeline, run.interval, run.run_id)
        self.lake, self._run, self._files = lake_root(lake_uri), run, files(self.uri)

    @staticmethod
    def holding(address: str) -> tuple[StoredCheckpoints, int]:
        """The run's checkpoints that include the checkpoint with this manifest, and its number.

        :raises CheckpointCorrupt: it is not there, no manifest, or not where a lake has one.
        """
        folder, _, file = address.rpartition("/")
        number = int(match[1]) if (match := MANIFEST.fullmatch(file)) else 0
        try:
            manifest = decode_manifest(files_at(folder).read(file), number, address)
        except FileNotFoundError as error:
            raise CheckpointCorrupt(number, f"{address} is missing") from error
        found = StoredCheckpoints(folder.rpartition(f"/{CHECKPOINTS}/")[0], manifest.run)
        if found.uri != lake_root(folder) or number != manifest.number:
            own = "/".join((*found.uri.split("/")[-4:], manifest_file(manifest.number)))
            raise CheckpointCorrupt(number, f"{address} has to lie in a lake, as LAKE/{own}")
        return found, number

    def write(self, checkpoint: Checkpoint, pipeline: Pipeline, *, builds_on: int | None = None) -> Manifest:
        """Make it durable.

        :param checkpoint: a stage's partitions are those that changed since ``builds_on``; all of them if that does not
            have the stage or cut it differently. Everything else is given whole.
        :param builds_on: a checkpoint of this run that is kept while this is written; its unchanged parts are referred
            to. None for one that shares nothing with any other, as a run's first one does, whatever it began with.
        :raises CheckpointNumberTaken: another one has the number already. The same one may be written twice.
        :raises CheckpointOvertaken: it was withdrawn, since what it refers to was discarded meanwhile.
        """
        assert self._run == CheckpointedRun(checkpoint.pipeline, checkpoint.interval, checkpoint.run_id)
        base = self.read_manifest(builds_on) if builds_on is not None else None
        parts = CheckpointParts(self._files, self.uri, checkpoint.id, builds_on)
        stages = tuple(_written(stage, base, parts) for stage in checkpoint.stages)
        manifest = Manifest(
            number=checkpoint.id,
            kind=checkpoint.kind,
            name=checkpoint.name,
            run=self._run,
            lake=self.lake,
            taken_at=checkpoint.taken_at,
            spec=pipeline.model_dump(mode="json"),
            stages=stages,
        )
        if self._made(manifest):
            self._withdraw_if_overtaken(manifest, builds_on)
        return manifest

    def address(self, number: int) -> str:
        """The address of the checkpoint's manifest."""
        return f"{self.uri}/{manifest_file(number)}"

    def numbers(self) -> tuple[int, ...]:
        """The checkpoints that there are, whether or not they can be read, in ascending order."""
        return _numbers(self._files.facts(""))

    def sizes(self) -> Collection[int]:
        """Bytes of every file of the run's checkpoints, also of those that nothing refers to."""
        return [file.bytes for file in self._files.facts("").values()]

    def read_manifest(self, number: int) -> Manifest:
        """
        :raises CheckpointCorrupt: it is not there, or not what was written as ``number`` of this run.
        """
        manifest = self._manifest_if_there(number)
        if manifest is None:
            raise CheckpointCorrupt(number, f"{self.uri}/{manifest_file(number)} is missing")
        return manifest

    def read_checkpoint(self, number: int) -> Checkpoint:
        """The whole of it, equal to what was written, with the addresses of a lake that was moved as they are now.

        :raises CheckpointCorrupt: as for the manifest, or for one of the parts.
        """
        manifest = self.read_manifest(number)
        parts, moved = CheckpointParts(self._files, self.uri, number), Relocation(manifest.lake, self.lake)
        return Checkpoint(
            id=number,
            kind=manifest.kind,
            **vars(manifest.run),
            taken_at=manifest.taken_at,
            stages=tuple(moved.snapshot(_snapshot(stage, parts)) for stage in manifest.stages),
            name=manifest.name,
        )

    def open(self, number: int) -> OpenedCheckpoint:
        """The checkpoint as `read_checkpoint` gives it, for whoever only looks at it.

        :raises CheckpointCorrupt: as `read_checkpoint` does, but for a row that is wrong in itself.
        """
        manifest = self.read_manifest(number)
        parts, moved = CheckpointParts(self._files, self.uri, number), Relocation(manifest.lake, self.lake)
        stages = tuple(
            OpenedStage(stage, moved.table(parts.read_table(stage)), stage.position and moved.position(stage.position))
            for stage in manifest.stages
        )
        return OpenedCheckpoint(manifest, f"{self.uri}/{manifest_file(number)}", self.lake, stages)

    def discard(self, number: int, older_than: datetime) -> None:
        """Delete the manifest, then the parts that no other checkpoint of the run refers to. It may be done twice.

        With them go parts and drafts that are older and that nothing refers to: of writers that died. Whoever is still
        writing after so long is taken for dead as well. It sees that its parts are gone when it has made its manifest,
        and withdraws that; likewise a writer that builds on ``number``. What remains: a writer that took so long, and
        makes its manifest and looks for its parts between our listing and our deleting; and one that does not look,
        since it died just then or never got the answer that it made the manifest. Then a manifest may stay that is
        refused when it is read.

        :raises CheckpointCorrupt: another checkpoint cannot be read, so nobody knows what it needs. Only the manifest
            is gone then.
        """
        own = self._parts_if_readable(number)
        self._files.remove([manifest_file(number)])
        present = self._files.facts("")
        needed = self._parts_of(_numbers(present))
        self._files.remove(
            [
                path
                for path, file in present.items()
                if PART_OR_DRAFT.fullmatch(path) and path not in needed and (path in own or file.modified < older_than)
            ]
        )

    def _made(self, manifest: Manifest) -> bool:
        """False if it is there already: whoever made it looks whether it was overtaken."""
        content, file = encode_manifest(manifest), manifest_file(manifest.number)
        if self._files.create(file, content):
            return True
        try:
            there = self._files.read(file)
        except FileNotFoundError as error:
            raise CheckpointOvertaken(manifest.number, file) from error
        if there != content:
            raise CheckpointNumberTaken(manifest.number, f"{self.uri}/{file}")
        return False

    def _withdraw_if_overtaken(self, manifest: Manifest, builds_on: int | None) -> None:
        """Take the manifest back if what it points to was discarded meanwhile. Whoever discards deletes the
        manifest first, and then lists what there is. So if the manifest below is there now, its discarder will see
        ours.
        """
        below = [manifest_file(builds_on)] if builds_on is not None else []
        made = [part.file for part in manifest.parts if part.written_by == manifest.number]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            there = pool.map(self._files.facts, (*below, *made))
        gone = [file for file, facts in zip((*below, *made), there, strict=True) if not facts]
        if gone:
            self._files.remove([manifest_file(manifest.number)])
            raise CheckpointOvertaken(manifest.number, f"{self.uri}/{gone[0]}")

    def _manifest_if_there(self, number: int) -> Manifest | None:
        file = f"{self.uri}/{manifest_file(number)}"
        try:
            content = self._files.read(manifest_file(number))
        except FileNotFoundError:
            return None
        manifest = decode_manifest(content, number, file)
        if (manifest.run, manifest.number) != (self._run, number):
            of = f"checkpoint {manifest.number} of run {manifest.run.run_id} of {manifest.run.pipeline}"
            raise CheckpointCorrupt(number, f"{file} is the manifest of {of}, interval {manifest.run.interval}")
        return manifest

    def _parts_of(self, numbers: Iterable[int]) -> Collection[str]:
        """Parts that they refer to; one that somebody discards just now no longer does."""
        manifests = map(self._manifest_if_there, numbers)
        return {part.file for manifest in manifests if manifest for part in manifest.parts}

    def _parts_if_readable(self, number: int) -> Collection[str]:
        """The parts of a checkpoint; none if it cannot be read. Such a checkpoint may be deleted too, and its parts go
        when they are old.
        """
        try:
            return self._parts_of([number])
        except CheckpointCorrupt:
            return ()


def manifest_file(number: int) -> str:
    """The name of a manifest in its run's folder."""
    return f"{number:010d}.json"


def _numbers(paths: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted(int(match[1]) for match in map(MANIFEST.fullmatch, paths) if match))


def _written(stage: StageSnapshot, base: Manifest | None, parts: CheckpointParts) -> StageManifest:
    below = base.continued(stage.shape.id, stage.parallelism, stage.max_parallelism) if base else None
    return StageManifest(
        shape=stage.shape,
        parallelism=stage.parallelism,
        max_parallelism=stage.max_parallelism,
        parts=parts.write(stage, below),
        states=stage.states,
        position=stage.position,
    )


def _snapshot(stage: StageManifest, parts: CheckpointParts) -> StageSnapshot:
    rows = parts.read(stage)
    return StageSnapshot(
        shape=stage.shape,
        parallelism=stage.parallelism,
        max_parallelism=stage.max_parallelism,
        partitions=tuple(row.record for row in rows),
        verdicts=tuple(verdict for row in rows for verdict in row.verdicts),
        states=stage.states,
        position=stage.position,
    )


Rows = Mapping[int, RecordedPartition]  # by partition


class CheckpointParts:
    """The parts in the folder of one run, written or read for checkpoint ``number``. While a checkpoint is being
    written, the parts of the one it builds on are read.
    """

    def __init__(self, files: Files, uri: str, number: int, builds_on: int | None = None) -> None:
        self._files, self._uri, self._number = files, uri, number
        self._read = number if builds_on is None else builds_on

    def write(self, changes: StageSnapshot, base: StageManifest | None) -> tuple[PartReference, ...]:
        """References to all of the stage's parts. Those with ``changes`` are read and written, no others."""
        references = {part.first: part for part in base.parts} if base else {}
        changed = _cut(rows_of_stage(changes))

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


def _by_partition(rows: Iterable[RecordedPartition]) -> Rows:
    return {row.record.partition: row for row in rows}


def _cut(rows: Iterable[RecordedPartition]) -> Mapping[int, Rows]:
    """The rows, by the first partition of the part that they belong to."""
    parts: dict[int, dict[int, RecordedPartition]] = defaultdict(dict)
    for row in rows:
        partition = row.record.partition
        parts[partition - partition % PARTITIONS_PER_PART][partition] = row
    return parts
