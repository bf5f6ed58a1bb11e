"""The files of a source, in a folder of this machine or in an object store, and the columns that their footers name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import FileFacts, files_at
from stagehold.lake.store.location import OBJECT_STORE, lake_root, published_table
from stagehold.model.kept import Shelf
from stagehold.model.source_position import SourceFile
from stagehold.plan.sources.merging import Array, ColumnType, MapOf, Struct
from stagehold.settings import Settings

LAKE = "${lake}"
WILDCARD = re.compile(r"[*?\[]")
FOOTER_TAIL = 1 << 16  # most footers are shorter
OF_A_TURN = 50  # files that a thread looks at, as most were looked at before: to ask it takes longer than that
END_OF_ORC = b"ORC"  # before the last byte
LONGER = 16  # times as much is read of a file whose footer is longer than that
FOOTER_END = 8  # its length and the magic word behind it
PLAIN_TYPES = {
    **{"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"},
    **{"uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)"},
    **{"float": "float", "double": "double", "date32[day]": "date", "string": "string", "large_string": "string"},
    **{"string_view": "string", "binary": "binary", "large_binary": "binary", "binary_view": "binary"},
}


@dataclass(frozen=True)
class SourceRoots:
    """Where paths of sources begin: at ``lake`` those that say so, and at ``project`` the relative ones."""

    lake: str
    project: str

    @staticmethod
    def of(settings: Settings) -> SourceRoots:
        """A sandbox reads where production does."""
        return SourceRoots(lake_root(settings.production.lake_uri), str(Path(settings.project).resolve()))

    def files(self, pattern: str) -> tuple[SourceFile, ...]:
        return find_files(pattern, self.lake, self.project)

    def address(self, path: str) -> str:
        return in_lake(path, self.lake, self.project)

    def table(self, name: str) -> str:
        """The address of a table that is called by its name in the lake or by its place."""
        return self.address(name) if is_place(name) else published_table(self.lake, name)

    def short(self, path: str) -> str:
        """A path as it is called wherever project and lake lie."""
        for root, begin in ((self.lake, f"{LAKE}/"), (self.project, "")):
            if path.startswith(f"{root}/"):
                return begin + path.removeprefix(f"{root}/")
        return path

    def means(self, pattern: str, address: str) -> bool:
        """Whether what lies at an address, perhaps a folder, is all there because of files that ``pattern`` means."""
        root, names = _cut(pattern, self.lake, self.project)
        if address == root:
            return True
        below = tuple(address.removeprefix(f"{root.rstrip('/')}/").split("/"))
        inside = address.startswith(f"{root.rstrip('/')}/")
        return inside and not any(map(_is_hidden, below)) and _matches(below, names)


def is_place(table: str) -> bool:
    """Whether a table is called by its address, and not by its name in the lake."""
    return "/" in table


def find_files(pattern: str, lake_uri: str, project: str = "") -> tuple[SourceFile, ...]:
    """The files that ``pattern`` means, by path: a file, all files of a folder, or all that a glob matches.

    A glob has ``*``, ``?`` and ``[...]`` within a name and ``**`` for any folders. A folder stands for all files in it,
    at any depth. What begins with ``_`` or ``.`` is hidden, as it is for Spark; a file still being written is not, so
    move finished ones into place.

    :param project: the folder that a relative path is seen from; empty for the current one
    """
    found = _found(pattern, lake_uri, project)
    return tuple(sorted(SourceFile(path, facts.bytes, facts.version) for path, facts in found))


def arrivals(pattern: str, lake_uri: str, project: str = "") -> Mapping[str, datetime]:
    """When the files that ``pattern`` means were last written, by path and the store's clock."""
    return {path: facts.modified for path, facts in _found(pattern, lake_uri, project)}


def _found(pattern: str, lake_uri: str, project: str) -> Iterator[tuple[str, FileFacts]]:
    root, names = _cut(pattern, lake_uri, project)
    parent, name = _parent(root)
    for path, facts in files_at(parent).facts(name).items():
        below = tuple(part for part in path.removeprefix(name).split("/") if part)
        if not any(map(_is_hidden, below)) and _matches(below, names):
            yield f"{parent.rstrip('/')}/{path}", facts


def in_lake(path: str, lake_uri: str, project: str = "") -> str:
    """``path`` as an address that does not depend on the current folder.

    Links that lead to the project are followed, as a shell does that tells its folder: so what is recorded of relative
    paths is called as it was when they were seen from there.
    """
    text = path.replace(LAKE, lake_uri.rstrip("/"))
    return text.rstrip("/") if text.startswith(OBJECT_STORE) else str(Path(project).resolve() / text)


def _cut(pattern: str, lake_uri: str, project: str) -> tuple[str, tuple[str, ...]]:
    """The folder up to the first wildcard, and the names to match below it. The lake's own name is never a pattern."""
    names = pattern.split("/")
    literal = next((place for place, name in enumerate(names) if WILDCARD.search(name)), len(names))
    begin = "/".join(names[:literal]) or ("/" if pattern.startswith("/") else ".")
    return in_lake(begin, lake_uri, project), tuple(filter(None, names[literal:]))


def _parent(root: str) -> tuple[str, str]:
    """Where to look, and for what: a bucket has no parent to look in."""
    if root.startswith(OBJECT_STORE) and "/" not in root.removeprefix(OBJECT_STORE):
        return root, ""
    parent, _, name = root.rpartition("/")
    return parent or "/", name


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether ``names`` lead to or through what ``patterns`` match."""
    if not patterns:
        return True
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or (bool(names) and _matches(names[1:], patterns))
    return bool(names) and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def columns_of(files: Sequence[SourceFile]) -> Mapping[str, Struct]:
    """The columns of Parquet and ORC files, by path, from their footers alone. A file whose footer nobody can read is
    left out, and refused by Spark when it is read.
    """
    turns = [files[first : first + OF_A_TURN] for first in range(0, len(files), OF_A_TURN)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [columns for of_some in pool.map(_columns_of_each, turns) for columns in of_some]
    return {file.path: columns for file, columns in zip(files, found, strict=True) if columns is not None}


_READ = Shelf[tuple[Struct | None]]("columns of source files")


def _columns_of_each(files: Sequence[SourceFile]) -> list[Struct | None]:
    return [_kept_columns(file) for file in files]


def _kept_columns(file: SourceFile) -> Struct | None:
    """A file's content is pinned by its version, so each is read once, as long as there is room to keep it."""
    kept = _READ.get(file)
    if kept is None:
        kept = (_columns(file),)
        _READ.put(file, kept, own=file)  # thousands have the same columns
    return kept[0]


def _columns(file: SourceFile) -> Struct | None:
    opened = _opened(file)
    if opened is None:
        return None
    schema = opened.schema if isinstance(opened, OrcFooter) else opened.schema_arrow
    return _alike(Struct(tuple((field.name, _type(field.type)) for field in schema)))


@dataclass(frozen=True)
class OrcFooter:
    """What the end of an ORC file says."""

    schema: Any


def _opened(file: SourceFile) -> Any:
    """The file's footer; None if it is gone, or has none that anybody can read."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        tail = _tail(file, FOOTER_TAIL)
        if tail[-len(END_OF_ORC) - 1 : -1] == END_OF_ORC:
            return OrcFooter(_orc_schema(file, tail))
        return pq.ParquetFile(pa.BufferReader(_footer(file, tail)))
    except (FileNotFoundError, pa.ArrowException, OSError):  # what it raises of bytes that are no footer
        return None


def _orc_schema(file: SourceFile, tail: bytes) -> Any:
    """:raises OSError: no footer is found in all of the file"""
    from pyarrow import ArrowException, BufferReader
    from pyarrow.orc import ORCFile  # type: ignore[import-untyped]

    while True:
        try:
            return ORCFile(BufferReader(tail)).schema
        except (ArrowException, OSError):
            if len(tail) >= file.bytes:
                raise
            tail = _tail(file, LONGER * len(tail))


def _tail(file: SourceFile, length: int) -> bytes:
    folder, _, name = file.path.rpartition("/")
    return files_at(folder).tail(name, length)


def greatest_of(file: SourceFile, column: str) -> date | datetime | None:
    """The greatest day or moment that a Parquet file has in a column, by its statistics; None if it has no rows.

    :raises LookupError: they do not tell
    """
    opened = _opened(file)
    if opened is None or isinstance(opened, OrcFooter):
        raise LookupError(column)
    if not opened.metadata.num_rows:
        return None
    groups = [opened.metadata.row_group(each) for each in range(opened.metadata.num_row_groups)]
    columns = [group.column(each) for group in groups for each in range(group.num_columns)]
    found = [each.statistics for each in columns if each.path_in_schema == column]
    known = [each.max for each in found if each is not None and each.has_min_max and isinstance(each.max, date)]
    if not known or len(known) < len(groups):
        raise LookupError(column)
    return max(known)


@lru_cache(maxsize=1_000)
def _alike(columns: Struct) -> Struct:
    """The same object for the columns of all files that have the same, since thousands are kept."""
    return columns


def _footer(file: SourceFile, tail: bytes) -> bytes:
    """The end of the file, where the footer is."""
    needed = int.from_bytes(tail[-FOOTER_END:-4], "little") + FOOTER_END
    return tail if needed <= len(tail) or needed > file.bytes else _tail(file, needed)


def _type(kind: Any) -> ColumnType:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _type(kind.value_type)
    if types.is_struct(kind):
        return Struct(tuple((field.name, _type(field.type)) for field in kind))
    if types.is_map(kind):
        return MapOf(_type(kind.key_type), _type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind):
        return Array(_type(kind.value_type))
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        # The oldest way to write a moment has nanoseconds and no zone, and is a moment for Spark.
        return "timestamp" if kind.tz or kind.unit == "ns" else "timestamp_ntz"
    return PLAIN_TYPES.get(str(kind), str(kind))
