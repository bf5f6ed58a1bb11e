"""The partitions of a checkpoint as Parquet, which DuckDB can open too: one row per partition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.model.choices import Severity
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, StatePart
from stagehold.model.standing import PartitionState

if TYPE_CHECKING:
    from pyarrow import Schema, Table  # type: ignore[import-untyped]

PLAIN = ("partition", "run_id", "attempt_id", "epoch", "wave", "table", "version", "rows", "fingerprint", "compute_key")
LATE = ("recorded_at", "reason", "seconds", "unexplained", "judged", "storing")
PART_BEFORE_CUTS = ("name", "files", "rows", "fingerprint")  # when nothing could be kept yet
PART_BEFORE_SHAPES = (*PART_BEFORE_CUTS, "partitions", "max_parallelism", "began", "after")
PART = (*PART_BEFORE_SHAPES, "shape")
VERDICT_BEFORE_SEVERITY = ("attempt_id", "suite", "expectation", "passed", "observed", "recorded_at")
VERDICT = (*VERDICT_BEFORE_SEVERITY, "severity", "configuration", "result")


@dataclass(frozen=True)
class RecordedPartition:
    """A partition's record and what its gate said; ``stage_id`` is the id under which its stage is restored."""

    stage_id: str
    record: PartitionRecord
    verdicts: tuple[GateResult, ...] = ()


def rows_of_stage(stage: StageSnapshot) -> Iterator[RecordedPartition]:
    said: dict[int, list[GateResult]] = defaultdict(list)
    for verdict in stage.verdicts:
        said[verdict.partition].append(verdict)
    return (RecordedPartition(stage.shape.id, record, tuple(said[record.partition])) for record in stage.partitions)


def encode(rows: Iterable[RecordedPartition]) -> bytes:
    """The bytes of a part. The same rows always give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    sink = pa.BufferOutputStream()
    pq.write_table(table_of(rows), sink, compression="zstd")
    return bytes(sink.getvalue())


def table_of(partitions: Iterable[RecordedPartition]) -> Table:
    """The rows as columns, as they are in a part. Arrow is given them as JSON: to make columns of Python's values it
    would import pandas to ask whether they are pandas'. That takes half a second, and is all that a run that reuses
    everything would do with pandas.
    """
    from pyarrow.json import ParseOptions, ReadOptions, read_json  # type: ignore[import-untyped]

    rows, schema = [*map(_row, partitions)], _schema()
    if not rows:
        return empty_table()
    lines = (json.dumps({name: row[name] for name in schema.names}, default=datetime.isoformat) for row in rows)
    text = "\n".join(lines).encode()
    at_once = ReadOptions(use_threads=False, block_size=len(text) + 1)  # no row lies in two blocks
    read = read_json(BytesIO(text), at_once, ParseOptions(explicit_schema=schema))
    columns = [column.chunk(0).view(kind) for column, kind in zip(read.columns, schema.types, strict=True)]
    return read.from_arrays(columns, schema=schema)  # as `cast`, for which Arrow imports all that it can compute


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
    """The table with the columns that earlier forms of a part did not have yet."""
    import pyarrow as pa

    def filled(name: str, value: object) -> Any:
        return pa.array([value] * table.num_rows, _schema().field(name).type)

    def replaced(name: str, column: Any) -> Table:
        return table.set_column(table.schema.get_field_index(name), _schema().field(name), column)

    found = {*table.column_names}
    if table.schema.field("kept").type == _schema(kept=PART_BEFORE_CUTS).field("kept").type:
        table = replaced("kept", filled("kept", []))
    if table.schema.field("kept").type == _schema(kept=PART_BEFORE_SHAPES).field("kept").type:
        kept = [[{**part, "shape": ""} for part in parts] for parts in table.column("kept").to_pylist()]
        table = replaced("kept", pa.array(kept, _schema().field("kept").type))
    if table.schema.field("verdicts").type == _schema(verdict=VERDICT_BEFORE_SEVERITY).field("verdicts").type:
        table = replaced("verdicts", _with_severities(table.column("verdicts")))
    for name, value in (("judged", ""), ("refused", []), ("counted", []), ("storing", None)):
        table = table if name in found else table.append_column(_schema().field(name), filled(name, value))
    return table


def _with_severities(verdicts: Any) -> Any:
    """From the time when an expectation had no severity: every one was critical."""
    import pyarrow as pa

    added = {"severity": Severity.CRITICAL, "configuration": "", "result": ""}
    said = [[{**verdict, **added} for verdict in judged] for judged in verdicts.to_pylist()]
    return pa.array(said, _schema().field("verdicts").type)


def empty_table() -> Table:
    """A table with the columns of a part and without rows."""
    return _schema().empty_table()


def records_in(table: Table) -> tuple[RecordedPartition, ...]:
    """The rows of a part as records.

    :raises ValueError: a row says something that cannot be.
    """
    try:
        return tuple(map(_recorded, table.to_pylist()))
    except (LookupError, TypeError) as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=4)
def _schema(kept: tuple[str, ...] = PART, verdict: tuple[str, ...] = VERDICT) -> Schema:
    import pyarrow as pa

    text, whole, time = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
    file = {"path": text, "bytes": whole, "rows": whole}
    part = {**dict.fromkeys(PART, text), **dict.fromkeys(("rows", "partitions", "max_parallelism"), whole)}
    part["files"] = _list_of(file)
    said = dict.fromkeys(VERDICT, text) | {"passed": pa.bool_(), "recorded_at": time}
    columns = {
        **dict.fromkeys(("stage_id", "pipeline", "stage", "interval"), text),
        **{"partition": whole, "state": text, "table": text, "version": whole},
        **{"files": _list_of(file), "rows": whole, "fingerprint": text, "compute_key": text},
        **{"run_id": text, "attempt_id": text, "epoch": whole, "wave": whole, "recorded_at": time},
        **{
            "reason": text,
            "seconds": pa.float64(),
            "unexplained": pa.bool_(),
            "verdicts": _list_of({name: said[name] for name in verdict}),
        },
        "kept": _list_of({name: part[name] for name in kept}),
        "judged": text,
        "refused": pa.list_(pa.field("element", text, nullable=False)),
        "counted": _list_of({"name": text, "count": whole}),
        "storing": pa.float64(),
    }
    optional = ("version", "reason", "seconds", "storing")
    return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in columns.items()])


def _list_of(fields: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    whole = pa.struct([pa.field(name, kind, nullable=name == "after") for name, kind in fields.items()])
    return pa.list_(pa.field("element", whole, nullable=False))


def _row(partition: RecordedPartition) -> dict[str, Any]:
    record = partition.record
    return {
        **vars(record),
        **vars(record.cell),
        "stage_id": partition.stage_id,
        "refused": list(record.refused),
        "counted": [{"name": name, "count": count} for name, count in record.counted],
        "files": [vars(file) for file in record.files],
        "kept": [{**vars(part), "files": [vars(file) for file in part.files]} for part in record.kept],
        "verdicts": [{name: getattr(verdict, name) for name in VERDICT} for verdict in partition.verdicts],
    }


def _recorded(row: Mapping[str, Any]) -> RecordedPartition:
    cell = Cell(row["pipeline"], row["stage"], row["interval"])
    record = PartitionRecord(
        cell=cell,
        state=PartitionState(row["state"]),
        files=_files(row["files"]),
        refused=tuple(row["refused"]),
        counted=tuple((counter["name"], counter["count"]) for counter in row["counted"]),
        kept=tuple(StatePart(**{**part, "files": _files(part["files"])}) for part in row["kept"]),
        **{name: row[name] for name in (*PLAIN, *LATE)},
    )
    verdicts = tuple(_verdict(cell, record.partition, verdict) for verdict in row["verdicts"])
    return RecordedPartition(row["stage_id"], record, verdicts)


def _verdict(cell: Cell, partition: int, said: Mapping[str, Any]) -> GateResult:
    return GateResult(cell=cell, partition=partition, **{**said, "severity": Severity(said["severity"])})


def _files(rows: Iterable[Mapping[str, Any]]) -> tuple[DataFile, ...]:
    return tuple(DataFile(**row) for row in rows)
