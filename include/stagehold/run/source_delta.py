"""Which files of a Delta table a source reads: those of one version, or those that commits added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.lake.delta_log import COMMIT_FILE, LOG_FOLDER, open_table, table_exists
from stagehold.lake.files import files_at
from stagehold.model.source_file import SourceFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

READABLE_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}  # those that leave data files as plain Parquet


@dataclass(frozen=True)
class TableFiles:
    """Files of a table and the columns of their rows; ``schema`` is JSON as Spark writes it, with the partition columns."""

    version: int
    schema: str
    files: tuple[SourceFile, ...]


def newest_version(stage: str, uri: str) -> int:
    return _open(stage, uri, None).version()


def files_of_version(stage: str, uri: str, version: int | None) -> TableFiles:
    """The table as it was at ``version``, or is now.

    Data files never change, so their paths pin what is read. The files of an old version may have been vacuumed; that is
    found when they are read.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    table = _open(stage, uri, version)
    adds: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    columns = table.metadata().partition_columns
    files = (_file(uri, add["path"], add["size_bytes"], {name: _text(add[f"partition.{name}"]) for name in columns}) for add in adds)
    return TableFiles(table.version(), table.schema().to_json(), tuple(sorted(files, key=_place)))


def files_added(stage: str, uri: str, first: int, last: int, *, skip_changes: bool) -> TableFiles:
    """What the commits from ``first`` to ``last`` added. Files that were only rewritten, as by OPTIMIZE, do not count.

    :param skip_changes: leave out commits that removed or replaced rows, instead of refusing them.
    :raises SourceChanged: such a commit is among them
    :raises SourceUnusable: a commit is no longer in the log
    """
    table = _open(stage, uri, last)
    files: list[SourceFile] = []
    for version in range(first, last + 1):
        actions = list(_actions(stage, uri, version))
        if any(remove["dataChange"] for remove in _of("remove", actions)):
            if not skip_changes:
                raise SourceChanged(stage, [f"version {version} of {uri} removed or replaced rows that were there before"])
            continue
        adds = (add for add in _of("add", actions) if add["dataChange"])
        files.extend(_file(uri, add["path"], add["size"], add["partitionValues"]) for add in adds)
    return TableFiles(last, table.schema().to_json(), tuple(sorted(files, key=_place)))


def _open(stage: str, uri: str, version: int | None) -> DeltaTable:
    """:raises SourceMissing: there is no table
    :raises SourceUnusable: it has not this version, or its data files alone do not tell its rows
    """
    from deltalake.exceptions import DeltaError

    if not table_exists(uri):
        raise SourceMissing(stage, f"{uri}, as a Delta table")
    try:
        table = open_table(uri, version)
    except DeltaError as error:
        raise SourceUnusable(stage, f"{uri} cannot be read at version {version}: {error}", "Name a version that it has") from error
    protocol, configuration = table.protocol(), table.metadata().configuration
    features = set(protocol.reader_features or ()) - READABLE_FEATURES
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if features:
        reason = f"{uri} has the features {', '.join(sorted(features))}, with which its files alone do not tell its rows"
        raise SourceUnusable(stage, reason, "Copy it to a table without them and read that")
    return table


def _actions(stage: str, uri: str, version: int) -> Iterator[dict[str, Any]]:
    name = f"{LOG_FOLDER}/{version:020d}.json"
    commits = files_at(uri)
    if name not in commits.facts(name):
        known = sorted(path for path in commits.sizes(LOG_FOLDER) if COMMIT_FILE.fullmatch(path))
        oldest = int(known[0].rpartition("/")[2].removesuffix(".json"))
        raise SourceUnusable(
            stage, f"version {version} is not in the log of {uri}, which begins with {oldest}", "Start from a later version"
        )
    return map(json.loads, commits.read(name).splitlines())


def _of(kind: str, actions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if kind in action)


def _file(uri: str, path: str, size: int, values: dict[str, str | None]) -> SourceFile:
    """Paths in the log are URL-encoded; one with a scheme is a file that a shallow clone has elsewhere."""
    decoded = unquote(path)
    return SourceFile(decoded if "://" in decoded else f"{uri}/{decoded}", size, "", tuple(sorted(values.items())))


def _place(file: SourceFile) -> str:
    return file.path


def _text(value: object) -> str | None:
    return None if value is None else str(value)
