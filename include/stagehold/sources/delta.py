"""The files of a Delta table that a source reads: those of a version, or those that commits added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stagehold.code.sql_slice import Slice, SliceUnfit, read_slice
from stagehold.errors import SourceChanged, SourceMissing, SourceUnusable
from stagehold.lake.commit.delta_log import AddedFile, commit_versions, open_table, read_commits, table_exists
from stagehold.lake.store.files import files_at
from stagehold.model.kept import Shelf
from stagehold.model.source_position import SourceFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

# those that leave data files as plain Parquet, or with which `table_rows` reads them
READABLE_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "deletionVectors", "columnMapping"}
MAPPING = "delta.columnMapping.mode"
MILLISECOND = timedelta(milliseconds=1)
PHYSICAL = "delta.columnMapping.physicalName"
ROWS_OF_A_WORD = 64
Deleted = Mapping[str, tuple[int, ...]]  # by the file's name, a bit for each row from the first on, 64 in a word


@dataclass(frozen=True)
class TableFiles:
    """Files of a table; ``schema`` are its columns as JSON of Spark's, with the partition columns. Of their rows only
    those count for which ``condition`` holds and that are not ``deleted``.
    """

    version: int
    schema: str
    files: tuple[SourceFile, ...]
    condition: str | None = None
    deleted: Deleted = field(default_factory=dict)


def newest_version(stage: str, uri: str) -> int:
    return _open(stage, uri, None).version()


def files_of_version(stage: str, uri: str, version: int | None, where: str | None = None) -> TableFiles:
    """The table as it was at ``version``, or is now: its files, or those that may have rows for which ``where`` holds.

    Data files never change, so their paths pin what is read, with the rows of theirs that are deleted. The files of an
    old version may have been vacuumed; that is found when they are read.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    table = _open(stage, uri, version)
    adds: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    columns, schema = table.metadata().partition_columns, schema_of(table)
    of_slice = slice_of(stage, where, types_of(schema)) if where else None
    condition = of_slice.condition if of_slice else None
    stored, deleted = stored_names(schema), deleted_rows(table)
    files = (
        _file(uri, unquote(add["path"]), add["size_bytes"], {name: _text(add[f"partition.{name}"]) for name in columns})
        for add in adds
        if of_slice is None or of_slice.may_have(partial(_span, add, stored))
    )
    return TableFiles(
        table.version(), schema, with_deleted(sorted(files, key=_place), deleted), condition, deleted=deleted
    )


def deleted_at(stage: str, uri: str, version: int) -> Deleted:
    return deleted_rows(_open(stage, uri, version))


def types_of(schema: str) -> dict[str, str]:
    """The plain columns of a table; others cannot be compared, and have no name in common with those."""
    return {field["name"]: str(field["type"]) for field in json.loads(schema)["fields"]}


def slice_of(stage: str, where: str, types: Mapping[str, str]) -> Slice:
    """:raises SourceUnusable: the condition does not fit the columns"""
    try:
        return read_slice(where, types)
    except SliceUnfit as unfit:
        raise SourceUnusable(stage, f"where: {unfit}", "Correct `where`, as `stagehold plan` reads it") from unfit


def _span(add: Mapping[str, Any], stored: Mapping[str, str], column: str) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column in a file, whose deleted rows may have them. Statistics of moments
    are cut to milliseconds, those of texts by characters that keep them on their side.
    """
    if (of_all := f"partition.{column}") in add:
        return None if add[of_all] is None else (add[of_all], add[of_all])
    least, most = add.get(f"min.{stored[column]}"), add.get(f"max.{stored[column]}")
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
    schema = schema_of(table)
    for commit in read_commits(uri, versions):
        if not any(file.data_change for file in commit.removed):
            added = [file for file in commit.added if file.data_change]
            _refuse_deleted(stage, uri, commit.version, added)
            files.extend(added_file(uri, file, schema) for file in added)
        elif not skip_changes:
            gone = f"version {commit.version} of {uri} removed or replaced rows that were there before"
            raise SourceChanged(stage, [gone])
    return TableFiles(last, schema, tuple(sorted(files, key=_place)))


def added_file(uri: str, added: AddedFile, schema: str) -> SourceFile:
    """A file that a commit added. The log calls the columns of its partition as files do."""
    named = {stored: name for name, stored in stored_names(schema).items()}
    values = {named.get(stored, stored): value for stored, value in added.partition.items()}
    return _file(uri, added.file.path, added.file.bytes, values)


def _refuse_deleted(stage: str, uri: str, version: int, added: Iterable[AddedFile]) -> None:
    """:raises SourceUnusable: a file came without some of its rows, as from a clone or a restored table"""
    if any(file.deletes for file in added):
        reason = f"version {version} of {uri} added files of which rows are deleted"
        raise SourceUnusable(stage, reason, "Read the table as it is, without `incremental` or `from_version`")


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
    if configuration.get(MAPPING, "none") not in ("none", "name"):
        features.add(f"{MAPPING}={configuration[MAPPING]}")
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
    return schema_of(_open(stage, uri, None))


def schema_of(table: DeltaTable) -> str:
    """The table's columns as JSON of Spark's, the same for the same columns: delta-rs gives what is said of a column in
    any order.
    """
    whole = json.loads(table.schema().to_json(), object_hook=_in_order)
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)


def _in_order(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "metadata": dict(sorted(part["metadata"].items()))} if "metadata" in part else part


def _place(file: SourceFile) -> str:
    return file.path


def _text(value: object) -> str | None:
    return None if value is None else str(value)


_DELETED = Shelf[Deleted]("deleted rows of source tables")


def deleted_rows(table: DeltaTable) -> Deleted:
    """The rows of its files that the table no longer has, as of the version of its handle; each version is read once,
    as long as there is room to keep it.
    """
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    place = (table.table_uri, table.metadata().id, table.version())
    kept = _DELETED.get(place)
    if kept is None:
        kept = _read_deleted(table)
        _DELETED.put(place, kept)
    return kept


def _read_deleted(table: DeltaTable) -> Deleted:
    import numpy as np
    import pyarrow as pa

    found: dict[str, tuple[int, ...]] = {}
    for file in pa.table(table.deletion_vectors()).to_batches():
        for path, kept in zip(file["filepath"], file["selection_vector"], strict=True):
            gone = ~np.asarray(kept.values.to_numpy(zero_copy_only=False), dtype=bool)
            bits = np.packbits(np.pad(gone, (0, -len(gone) % ROWS_OF_A_WORD)), bitorder="little")
            found[unquote(path.as_py()).rpartition("/")[2]] = tuple(bits.view("<i8").tolist())
    return found


def with_deleted(files: Iterable[SourceFile], deleted: Deleted) -> tuple[SourceFile, ...]:
    """The files as they are with these rows deleted: another version for other rows."""
    return tuple(
        SourceFile(file.path, file.bytes, _version(deleted[name]), file.partition)
        if (name := name_of(file)) in deleted
        else file
        for file in files
    )


def _version(words: Sequence[int]) -> str:
    return f"deleted:{sha256(repr(words).encode()).hexdigest()[:16]}"


def name_of(file: SourceFile) -> str:
    return file.path.rpartition("/")[2]


def stored_names(schema: str) -> Mapping[str, str]:
    """What plain columns are called in files and statistics, by their names in the table's ``schema``, as JSON."""
    fields = json.loads(schema)["fields"]
    return {field["name"]: (field.get("metadata") or {}).get(PHYSICAL, field["name"]) for field in fields}


def is_mapped(schema: str) -> bool:
    return PHYSICAL in schema
