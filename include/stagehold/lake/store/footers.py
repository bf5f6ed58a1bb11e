"""What a Parquet file says about itself in its footer: rows, and nulls and range of its plain columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.model.kept import Shelf

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData  # type: ignore[import-untyped]

FIRST_GUESS = 64 * 1024  # one read brings most footers whole
LENGTH_AND_MAGIC = 8
# An object store answers many readers as fast as one. A disk's footers are there at once, and more readers would only
# wait for each other's Python.
READERS, READERS_OF_A_DISK = 16, 2
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True)
class ColumnRange:
    """``nulls`` is None when the file does not count them; ``minimum`` and ``maximum`` when it has no exact ones, or
    such as Python cannot say.
    """

    nulls: int | None
    minimum: Any
    maximum: Any


@dataclass(frozen=True)
class Footer:
    """Columns inside structs, arrays and maps are left out of ``columns``; ``types`` has all that are no part of
    another.

    ``spark_schema`` is the JSON of the frame that Spark wrote; empty for a file that Spark did not write.
    """

    rows: int
    columns: Mapping[str, ColumnRange]
    spark_schema: str = ""
    types: Mapping[str, str] = field(default_factory=dict)


_READ = Shelf[Footer]("footers of files")


def read_footer(uri: str, path: str) -> Footer:
    """Footer of the file ``path`` below ``uri``. It is kept for a while, as data files are written once and never
    changed.
    """
    kept = _READ.get((uri, path))
    if kept is None:
        kept = _read(uri, path)
        _READ.put((uri, path), kept)
    return kept


def read_footers(uri: str, paths: Sequence[str]) -> Iterator[Footer]:
    """The footers of these files below ``uri``, in their order, some of them read at the same time."""
    with ThreadPoolExecutor(READERS if uri.startswith(OBJECT_STORE) else READERS_OF_A_DISK) as pool:
        yield from pool.map(partial(read_footer, uri), paths)


def _read(uri: str, path: str) -> Footer:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    metadata = pq.read_metadata(io.BytesIO(_footer_bytes(uri, path)))
    rows, count = metadata.num_rows, metadata.num_columns
    plain = [index for index in range(count) if _is_plain(metadata, index)]
    columns = {metadata.schema.column(index).name: _range(metadata, index) for index in plain}
    types = {column.name: str(column.type) for column in metadata.schema.to_arrow_schema()}
    return Footer(rows, columns, (metadata.metadata or {}).get(SPARK_SCHEMA, b"").decode(), types)


def _footer_bytes(uri: str, path: str) -> bytes:
    tail = files_at(uri).tail(path, FIRST_GUESS)
    needed = int.from_bytes(tail[-LENGTH_AND_MAGIC:][:4], "little") + LENGTH_AND_MAGIC
    return tail if needed <= len(tail) else files_at(uri).tail(path, needed)


def _is_plain(metadata: FileMetaData, index: int) -> bool:
    column = metadata.schema.column(index)
    return bool(column.max_repetition_level == 0 and column.path == column.name)


def _range(metadata: FileMetaData, index: int) -> ColumnRange:
    chunks = [metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)]
    statistics = [chunk.statistics for chunk in chunks]
    if not all(statistics):
        return ColumnRange(None, None, None)
    nulls = (
        sum(statistic.null_count for statistic in statistics)
        if all(statistic.has_null_count for statistic in statistics)
        else None
    )
    filled = [
        statistic
        for chunk, statistic in zip(chunks, statistics, strict=True)
        if statistic.null_count != chunk.num_values
    ]
    if not filled or not all(statistic.has_min_max for statistic in filled):
        return ColumnRange(nulls, None, None)
    try:
        return ColumnRange(
            nulls, min(statistic.min for statistic in filled), max(statistic.max for statistic in filled)
        )
    except (OverflowError, ValueError):  # Python knows no year beyond 9999 or before 1, and no text that is not UTF-8
        return ColumnRange(nulls, None, None)
