"""The columns of Parquet files, from their footers alone. A file's content is pinned by its version, so each is read
once in a process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from stagehold.lake.commit.delta_log import AT_ONCE
from stagehold.lake.store.files import files_at
from stagehold.model.source_position import SourceFile
from stagehold.plan.sources.merging import Array, ColumnType, MapOf, Struct

TAIL = 1 << 16  # most footers are shorter
END = 8  # its length and the magic word behind it
PLAIN = {
    **{"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"},
    **{"uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)"},
    **{"float": "float", "double": "double", "date32[day]": "date", "string": "string", "large_string": "string"},
    **{"string_view": "string", "binary": "binary", "large_binary": "binary", "binary_view": "binary"},
}


def columns_of(files: Sequence[SourceFile]) -> Mapping[str, Struct]:
    """By path; a file whose footer nobody can read is left out, and refused by Spark when it is read."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(_columns, files)
        return {file.path: one for file, one in zip(files, found, strict=True) if one is not None}


@lru_cache(maxsize=100_000)
def _columns(file: SourceFile) -> Struct | None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        footer = _footer(file)
    except FileNotFoundError:
        return None
    try:
        schema = pq.ParquetFile(pa.BufferReader(footer)).schema_arrow
    except (pa.ArrowException, OSError):  # what it raises of bytes that it cannot take for a footer
        return None
    return Struct(tuple((field.name, _type(field.type)) for field in schema))


def _footer(file: SourceFile) -> bytes:
    """The end of the file that has it."""
    folder, _, name = file.path.rpartition("/")
    tail = files_at(folder).tail(name, TAIL)
    needed = int.from_bytes(tail[-END:-4], "little") + END
    return tail if needed <= len(tail) or needed > file.bytes else files_at(folder).tail(name, needed)


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
    return PLAIN.get(str(kind), str(kind))
