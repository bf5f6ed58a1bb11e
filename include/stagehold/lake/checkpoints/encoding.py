"""Partitions of a checkpoint as Parquet, which DuckDB opens as well: one row for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, PartitionState, StatePart

if TYPE_CHECKING:
    from pyarrow import Schema, Table  # type: ignore[import-untyped]

PLAIN = ("partition", "run_id", "attempt_id", "epoch", "wave", "table", "version", "rows", "fingerprint", "compute_key")
LATE = ("recorded_at", "reason", "seconds", "unexplained", "judged")
PART_BEFORE_CUTS = ("name", "files", "rows", "fingerprint")  # when nothing could be kept yet
PART = (*PART_BEFORE_CUTS, "partitions", "max_parallelism", "began", "after")
VERDICT = ("attempt_id", "suite", "expectation", "passed", "observed", "recorded_at")


@dataclass(frozen=True)
class RecordedPartition:
    """A partition's record and what its gate said; ``stage_id`` is the id its stage is restored by."""

    stage_id: str
    record: PartitionRecord
    verdicts: tuple[GateResult, ...] = ()


def encode(rows: Iterable[RecordedPartition]) -> bytes:
    """The same bytes for the same rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([_row(one) for one in rows], schema=_schema()), sink, compression="zstd")
    return bytes(sink.getvalue())


def decode_table(content: bytes) -> Table:
    """The rows that `encode` was given, as columns.

    :raises ValueError: it did not make this content.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error
    table = _completed(table)
    if not table.schema.equals(_schema()):
        raise ValueError("its columns are not those of a part")
    return table


def _completed(table: Table) -> Table:
    """With the columns that parts did not have in their earlier forms."""
    import pyarrow as pa

    def filled(name: str, value: object) -> Any:
        return pa.array([value] * table.num_rows, _schema().field(name).type)

    first, second = (_schema(kept).remove(_schema().get_field_index("judged")) for kept in (PART_BEFORE_CUTS, PART))
    if table.schema.remove_metadata().equals(first):
        table = table.set_column(table.schema.get_field_index("kept"), second.field("kept"), filled("kept", []))
    if table.schema.remove_metadata().equals(second):
        table = table.append_column(_schema().field("judged"), filled("judged", ""))
    return table


def empty_table() -> Table:
    """No rows, with the columns that a part has."""
    return _schema().empty_table()


def records_in(table: Table) -> tuple[RecordedPartition, ...]:
    """The rows of a part.

    :raises ValueError: it says what cannot be.
    """
    try:
        return tuple(map(_recorded, table.to_pylist()))
    except (LookupError, TypeError) as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=2)
def _schema(kept: tuple[str, ...] = PART) -> Schema:
    import pyarrow as pa

    text, whole, time = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
    file = {"path": text, "bytes": whole, "rows": whole}
    part = {**dict.fromkeys(PART, text), **dict.fromkeys(("rows", "partitions", "max_parallelism"), whole)}
    part["files"] = _list_of(file)
    verdict = dict.fromkeys(VERDICT, text) | {"passed": pa.bool_(), "recorded_at": time}
    columns = {
        **dict.fromkeys(("stage_id", "pipeline", "stage", "interval"), text),
        **{"partition": whole, "state": text, "table": text, "version": whole},
        **{"files": _list_of(file), "rows": whole, "fingerprint": text, "compute_key": text},
        **{"run_id": text, "attempt_id": text, "epoch": whole, "wave": whole, "recorded_at": time},
        **{"reason": text, "seconds": pa.float64(), "unexplained": pa.bool_(), "verdicts": _list_of(verdict)},
        "kept": _list_of({name: part[name] for name in kept}),
        "judged": text,
    }
    optional = ("version", "reason", "seconds")
    return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in columns.items()])


def _list_of(fields: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    whole = pa.struct([pa.field(name, kind, nullable=name == "after") for name, kind in fields.items()])
    return pa.list_(pa.field("element", whole, nullable=False))


def _row(one: RecordedPartition) -> dict[str, Any]:
    record = one.record
    return {
        **vars(record),
        **vars(record.cell),
        "stage_id": one.stage_id,
        "files": [vars(file) for file in record.files],
        "kept": [{**vars(part), "files": [vars(file) for file in part.files]} for part in record.kept],
        "verdicts": [{name: getattr(verdict, name) for name in VERDICT} for verdict in one.verdicts],
    }


def _recorded(row: Mapping[str, Any]) -> RecordedPartition:
    cell = Cell(row["pipeline"], row["stage"], row["interval"])
    record = PartitionRecord(
        cell=cell,
        state=PartitionState(row["state"]),
        files=_files(row["files"]),
        kept=tuple(StatePart(**{**part, "files": _files(part["files"])}) for part in row["kept"]),
        **{name: row[name] for name in (*PLAIN, *LATE)},
    )
    verdicts = tuple(GateResult(cell=cell, partition=record.partition, **verdict) for verdict in row["verdicts"])
    return RecordedPartition(row["stage_id"], record, verdicts)


def _files(rows: Iterable[Mapping[str, Any]]) -> tuple[DataFile, ...]:
    return tuple(DataFile(**row) for row in rows)
