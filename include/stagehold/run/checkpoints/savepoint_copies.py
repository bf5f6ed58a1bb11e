"""Copies a savepoint out of its lake, as a small lake of its own, and into another one.

TARGET/export.json                      made last: what was copied, with checksums
TARGET/checkpoints/..., TARGET/...      as in the lake, but only what the savepoint consists of
TARGET/ledger/DAY/positions.jsonl       what all intervals had taken of incremental sources when it was made
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from itertools import groupby

from rich.filesize import decimal

from stagehold.checkpoints.checkpoint import Checkpoint
from stagehold.chronicle.chronicle import ENDING
from stagehold.chronicle.chronicle import FOLDER as CHRONICLE
from stagehold.errors import CopyRefused, ExportUnusable, PartitionDataMissing, SavepointTaken
from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.manifest import Manifest
from stagehold.lake.checkpoints.savepoints import FOLDER, Savepoint, Savepoints, checked_name
from stagehold.lake.checkpoints.stored_checkpoints import manifest_file
from stagehold.lake.commit.delta_log import LOG_FOLDER
from stagehold.lake.copying import copy_files
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import lake_root
from stagehold.ledger.fact_lines import to_lines
from stagehold.run.equipment.workplace import Progress
from stagehold.settings import Settings
from stagehold.sources.taken_positions import positions_taken

LISTING = "export.json"
FORMAT, VERSION = "stagehold-export", 1
NEXT_REPORT = 2.0  # seconds until the next report of how far the copying is


# A savepoint that was copied, or was there already, with the number and size of its files.
Moved = tuple[Savepoint, int, int]
_Listed = tuple[int, str]  # bytes and SHA-256 of a file


def export_savepoint(name: str, target: str, settings: Settings, progress: Progress) -> Moved:
    """Copy the savepoint to a folder or bucket. A process that dies in the middle may do it again; then only missing
    files are copied.

    :raises PartitionDataMissing: not all of its data is there; nothing was copied.
    :raises CopyRefused: something else is in the place of one of its files.
    """
    savepoint = Savepoints(settings.lake_uri).get(name)
    lake, sizes, positions = _contents(savepoint, settings.lake_uri)
    told = _Told(len(sizes), progress)
    paths = {path: path for path in sizes}
    sums = copy_files(files_at(lake), files_at(target), paths, told)
    copied = {path: (sizes[path], sums[path]) for path in sums}
    listed = {**copied, **_made(positions, target)}
    listing = {"format": FORMAT, "version": VERSION, "savepoint": {**asdict(savepoint), "root": ""}}
    files = {path: {"bytes": size, "sha256": sha256} for path, (size, sha256) in sorted(listed.items())}
    text = json.dumps({**listing, "files": files}, indent=1, default=datetime.isoformat).encode()
    if not files_at(target).create(LISTING, text) and files_at(target).read(LISTING) != text:
        raise CopyRefused(f"{target}/{LISTING}")
    return savepoint, len(listed), sum(size for size, _ in listed.values())


def import_savepoint(source: str, name: str | None, settings: Settings, progress: Progress) -> Moved:
    """Copy an exported savepoint into this lake, where it is a lake of its own, and name it.

    :raises ExportUnusable: it is not complete, or not what was exported.
    :raises SavepointTaken: there is another savepoint of that name.
    """
    exported, listed = _read(source)
    named = checked_name(name or exported.name)
    root = f"{FOLDER}/{named}"
    savepoint = replace(exported, name=named, root=root)
    savepoints = Savepoints(settings.lake_uri)
    if (taken := savepoints.find(named)) not in (None, savepoint):
        raise SavepointTaken(named, f"of run {taken.run_id if taken else ''}")
    target = files_at(f"{lake_root(settings.lake_uri)}/{root}")
    try:
        sums = copy_files(files_at(source), target, {path: path for path in listed}, _Told(len(listed), progress))
    except FileNotFoundError as error:
        raise ExportUnusable(source, f"{error.filename or error} is missing") from error
    other = [path for path, sha256 in sums.items() if sha256 != listed[path][1]]
    if other:
        target.remove(other)
        raise ExportUnusable(source, f"{other[0]} has another content than when it was exported")
    savepoints.stored(savepoint).read_checkpoint(savepoint.number)
    if not savepoints.create(savepoint):
        raise SavepointTaken(named, "made just now")
    return savepoint, len(listed), sum(size for size, _ in listed.values())


def _read(source: str) -> tuple[Savepoint, Mapping[str, _Listed]]:
    try:
        facts = json.loads(files_at(source).read(LISTING))
        if (facts["format"], facts["version"]) != (FORMAT, VERSION):
            raise ValueError(f"its format is not {FORMAT} {VERSION}")
        said = facts["savepoint"]
        savepoint = Savepoint(**{**said, "created_at": datetime.fromisoformat(said["created_at"])})
        return savepoint, {path: (entry["bytes"], entry["sha256"]) for path, entry in facts["files"].items()}
    except FileNotFoundError as error:
        raise ExportUnusable(source, f"it has no {LISTING}, which is made last") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ExportUnusable(source, f"{LISTING} cannot be read ({error})") from error


def _made(content: Mapping[str, bytes], target: str) -> Mapping[str, _Listed]:
    """Files that are made for the export, with sizes and checksums.

    :raises CopyRefused: something else is in the place of one of these files.
    """
    files = files_at(target)
    for path, text in content.items():
        if not files.create(path, text) and files.read(path) != text:
            raise CopyRefused(path)
    return {path: (len(text), hashlib.sha256(text).hexdigest()) for path, text in content.items()}


def _contents(savepoint: Savepoint, lake_uri: str) -> tuple[str, Mapping[str, int], Mapping[str, bytes]]:
    """The lake that a savepoint is in; all its files by their path below that, with their bytes; and a chronicle to be
    made for it, of what all intervals had taken of incremental sources.
    """
    stored, lake = Savepoints(lake_uri).stored(savepoint), lake_root(lake_uri)
    if savepoint.root:
        lake = f"{lake}/{savepoint.root}"
    checkpoint = stored.read_checkpoint(savepoint.number)
    own = stored.uri.removeprefix(f"{lake}/")
    manifest = stored.read_manifest(savepoint.number)
    size = files_at(stored.uri).facts(manifest_file(savepoint.number))[manifest_file(savepoint.number)].bytes
    parts = {f"{own}/{part.file}": part.bytes for part in manifest.parts}
    sizes = {f"{own}/{manifest_file(savepoint.number)}": size, **parts, **dict(_data(checkpoint, lake))}
    return lake, sizes, _positions(manifest, lake)


def _positions(manifest: Manifest, lake: str) -> Mapping[str, bytes]:
    names = {stage["name"] for stage in manifest.spec["stages"] if stage["source"] and stage["source"]["incremental"]}
    incremental = {stage.shape.id for stage in manifest.stages if stage.shape.name in names}
    taken = tuple(positions_taken(lake, manifest.run.pipeline, incremental, until=manifest.taken_at))
    return {f"{CHRONICLE}/{manifest.taken_at:%Y-%m-%d}/positions{ENDING}": to_lines(taken)} if taken else {}


def _data(checkpoint: Checkpoint, lake: str) -> Iterator[tuple[str, int]]:
    """The files of a savepoint's partitions, and logs of their tables, which tell the columns of empty partitions."""
    for stage in checkpoint.stages:
        records = [record for record in stage.partitions if record.state.readable]
        if gone := missing_files(records):
            raise PartitionDataMissing(stage.shape.name, sorted(gone))
        by_table = sorted(records, key=lambda record: record.table)
        for table, table_records in groupby(by_table, key=lambda record: record.table):
            below = table.removeprefix(f"{lake}/")
            yield from ((f"{below}/{file.path}", file.bytes) for record in table_records for file in record.all_files)
            log = files_at(table).sizes(LOG_FOLDER)
            yield from ((f"{below}/{path}", size) for path, size in log.items())


class _Told:
    """Reports from time to time how far the copying is."""

    def __init__(self, total: int, progress: Callable[[str], None]) -> None:
        self.total, self.progress, self.files, self.bytes = total, progress, 0, 0
        self.next_report = time.monotonic() + NEXT_REPORT

    def __call__(self, size: int) -> None:
        self.files, self.bytes = self.files + 1, self.bytes + size
        if time.monotonic() >= self.next_report:
            self.next_report = time.monotonic() + NEXT_REPORT
            self.progress(f"{self.files} of {self.total} files are there, {decimal(self.bytes)}")
