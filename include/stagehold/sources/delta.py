"""The files of a Delta table that a source reads: those of a version, or those that commits added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stagehold.code.sql_slice import Slice, SliceUnfit, read_slice
from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.lake.commit.delta_log import commit_versions, open_table, read_commits, table_exists
from stagehold.lake.store.files import files_at
from stagehold.model.source_position import SourceFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

# those that leave data files as plain Parquet
READABLE_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class TableFiles:
    """Files of a table; ``schema`` are its columns as JSON of Spark's, with the partition columns. Of their rows only
    those count for which ``condition`` holds.
    """

    version: int
    schema: str
    files: tuple[SourceFile, ...]
    condition: str | None = None


def newest_version(stage: str, uri: str) -> int:
    return _open(stage, uri, None).version()


def files_of_version(stage: str, uri: str, version: int | None, where: str | None = None) -> TableFiles:
    """The table as it was at ``version``, or is now: its files, or those that may have rows for which ``where`` holds.

    Data files never change, so their paths pin what is read. The files of an old version may have been vacuumed; that
    is found when they are read.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    table = _open(stage, uri, version)
    adds: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    columns, schema = table.metadata().partition_columns, table.schema().to_json()
    of_slice = slice_of(stage, where, types_of(schema)) if where else None
    condition = of_slice.condition if of_slice else None
    files = (
        _file(uri, unquote(add["path"]), add["size_bytes"], {name: _text(add[f"partition.{name}"]) for name in columns})
        for add in adds
        if of_slice is None or of_slice.may_have(partial(_span, add))
    )
    return TableFiles(table.version(), schema, tuple(sorted(files, key=_place)), condition)


def types_of(schema: str) -> dict[str, str]:
    """The plain columns of a table; others cannot be compared, and have no name in common with those."""
    return {field["name"]: str(field["type"]) for field in json.loads(schema)["fields"]}


def slice_of(stage: str, where: str, types: Mapping[str, str]) -> Slice:
    """:raises SourceUnusable: the condition does not fit the columns"""
    try:
        return read_slice(where, types)
    except SliceUnfit as unfit:
        raise SourceUnusable(stage, f"where: {unfit}", "Correct `where`, as `stagehold plan` reads it") from unfit


def _span(add: Mapping[str, Any], column: str) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column in a file. Statistics of moments are cut to milliseconds, those of
    texts by characters that keep them on their side.
    """
    if (of_all := f"partition.{column}") in add:
        return None if add[of_all] is None else (add[of_all], add[of_all])
    least, most = add.get(f"min.{column}"), add.get(f"max.{column}")
    if least is None or most is None:
        return None
    return (least, most + MILLISECOND if isinstance(most, datetime) else most)


def files_added(stage: str, uri: str, first: int, last: int, *, skip_changes: bool) -> TableFiles:
    """What the commits from ``first`` to ``last`` added. Files that were only rewritten, as by OPTIMIZE, do not count.

    :param skip_changes: leave out commits that removed or replaced rows, instead of refusing them.
    :raises SourceChanged: such a commit is among them
    :raises SourceUnusable: a commit is no longer in the log
    """
    table, versions = _open(stage, uri, last), range(first, last + 1)
    _refuse_forgotten(stage, uri, versions)
    files: list[SourceFile] = []
    for commit in read_commits(uri, versions):
        if not any(file.data_change for file in commit.removed):
            added = (file for file in commit.added if file.data_change)
            files.extend(_file(uri, file.file.path, file.file.bytes, file.partition) for file in added)
        elif not skip_changes:
            gone = f"version {commit.version} of {uri} removed or replaced rows that were there before"
            raise SourceChanged(stage, [gone])
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
        raise SourceUnusable(
            stage, f"{uri} cannot be read at version {version}: {error}", "Name a version that it has"
        ) from error
    protocol, configuration = table.protocol(), table.metadata().configuration
    features = set(protocol.reader_features or ()) - READABLE_FEATURES
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if features:
        reason = (
            f"{uri} has the features {', '.join(sorted(features))}, with which its files alone do not tell its rows"
        )
        raise SourceUnusable(stage, reason, "Copy it to a table without them and read that")
    return table


def _refuse_forgotten(stage: str, uri: str, versions: Sequence[int]) -> None:
    """:raises SourceUnusable: a commit is no longer in the log"""
    known = commit_versions(uri)
    forgotten = sorted({*versions} - {*known})
    if forgotten:
        reason = f"version {forgotten[0]} is not in the log of {uri}, which begins with {known[0]}"
        raise SourceUnusable(stage, reason, "Start from a later version")


def _file(uri: str, path: str, size: int, values: Mapping[str, str | None]) -> SourceFile:
    """The address of a file. A path with a scheme is a file elsewhere, to which a shallow clone refers."""
    return SourceFile(path if "://" in path else f"{uri}/{path}", size, "", tuple(sorted(values.items())))


def below_table(uri: str, file: SourceFile) -> SourceFile:
    """The file by its path relative to the table."""
    return replace(file, path=file.path.removeprefix(f"{uri}/"))


def in_table(uri: str, file: SourceFile) -> SourceFile:
    """The address of a file that `below_table` gave."""
    return _file(uri, file.path, file.bytes, dict(file.partition))


def gone_files(uri: str, files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """The files of the table that no longer exist; a clone's files elsewhere are not checked."""
    own = [file for file in files if file.path.startswith(f"{uri}/")]
    folders = {below_table(uri, file).path.rpartition("/")[0] for file in own}
    there = {f"{uri}/{path}" for folder in folders for path in files_at(uri).sizes(folder)}
    return tuple(file for file in own if file.path not in there)


def schema_now(stage: str, uri: str) -> str:
    return _open(stage, uri, None).schema().to_json()


def _place(file: SourceFile) -> str:
    return file.path


def _text(value: object) -> str | None:
    return None if value is None else str(value)
