"""A lake made by hand: two stages with data, one of them with state, and checkpoints of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import files_at
from stagehold.model.keys.compute_key import digest
from stagehold.model.records import Cell, DataFile, GateResult, PartitionRecord, StatePart
from stagehold.model.source_position import FilesRead, SourceFile
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.model.standing import PartitionState
from stagehold.spec.pipeline import Input, Pipeline, Stage
from stagehold.spec.settings.source import Source

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = CheckpointedRun("sales", "2026-01-01", "sales/run")
RUN_FOLDER = "checkpoints/sales/2026-01-01/sales-run-"
SOURCE = Source(kind="parquet", path="/raw", splits=4)
PIPELINE = Pipeline(
    name="sales",
    file="sales.yaml",
    stages=(
        Stage(name="orders", job="jobs.sales:orders", source=SOURCE, partitions=4, max_parallelism=128),
        Stage(name="names", job="jobs.sales:names", inputs=(Input(stage="orders"),), partitions=1, max_parallelism=128),
    ),
)
SHAPES = stage_shapes(PIPELINE)
SEEN_COLUMNS = (StateColumn("id", "bigint"), StateColumn("times", "int"))
SEEN = StateShape("seen", StateKind.KEYED, SEEN_COLUMNS, ("id",), "hash-1")
OFFSETS = StateShape("offsets", StateKind.SPLIT, (StateColumn("path", "string"),))
Row = dict[str, Any]


def order(number: int, price: str = "1.50") -> Row:
    return {
        "id": number,
        "price": Decimal(price),
        "at": NOW + timedelta(hours=number),
        "tags": [{"name": "a", "weight": number}],
        "_group_128_abc": number,
    }


def parquet(lake: str, table: str, path: str, rows: list[Row]) -> DataFile:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    content = bytes(sink.getvalue())
    files_at(f"{lake}/{table}").create(path, content)
    return DataFile(path, len(content), len(rows))


def partition(lake: str, stage: str, number: int, rows: list[Row], wave: int = 0, **facts: Any) -> PartitionRecord:
    """Consumable, with one file."""
    table = f"stages/sales/{stage}/2026-01-01"
    file = parquet(lake, table, f"_data/attempt-1/{wave}/_partition={number}/part-0.parquet", rows)
    record = PartitionRecord(
        cell=Cell("sales", stage, "2026-01-01"),
        partition=number,
        state=PartitionState.CONSUMABLE,
        run_id="sales/run",
        attempt_id="attempt-1",
        epoch=1,
        wave=wave,
        table=f"{lake}/{table}",
        version=wave,
        files=(file,),
        rows=len(rows),
        fingerprint=digest(map(str, rows)),
        compute_key=f"key {number}",
        recorded_at=NOW,
        seconds=0.5,
    )
    return replace(record, **facts)


def kept(lake: str, name: str, number: int, rows: list[Row]) -> StatePart:
    path = f"_data/attempt-1/0/_state/{name}/_partition={number}/part-0.parquet"
    file = parquet(lake, "stages/sales/orders/2026-01-01", path, rows)
    return StatePart(name, (file,), len(rows), digest(map(str, rows)), 4, 128, began="")


def _seen(group: int, number: int, times: int) -> Row:
    return {"_group": group, "id": number, "times": times}


def orders(lake: str) -> StageSnapshot:
    """Partitions 0 and 1 consumable, 2 blocked, 3 without a record."""
    seen = [[_seen(5, 1, 2), _seen(9, 7, 1)], [_seen(40, 3, 4)]]
    paths = [[{"_position": 0, "path": "a"}, {"_position": 1, "path": "b"}], [{"_position": 0, "path": "c"}]]
    records = [
        partition(
            lake,
            "orders",
            number,
            [order(2 * number), order(2 * number + 1)],
            kept=(
                kept(lake, "seen", number, seen[number]),
                kept(lake, "offsets", number, paths[number]),
            ),
        )
        for number in (0, 1)
    ]
    blocked = replace(records[1], partition=2, state=PartitionState.BLOCKED, version=None, kept=(), reason="3 nulls")
    verdicts = [
        GateResult(blocked.cell, 2, "attempt-1", "orders", "not_null price", False, "3", NOW),
        GateResult(blocked.cell, 2, "attempt-1", "orders", "rows", True, "2", NOW),
    ]
    position = FilesRead((SourceFile(f"{lake}/raw/1.parquet", 100, "1"), SourceFile("/elsewhere/2.parquet", 50, "1")))
    return StageSnapshot(SHAPES[0], 4, 128, (*records, blocked), tuple(verdicts), (SEEN, OFFSETS), position)


def names(lake: str) -> StageSnapshot:
    rows = [{"name": "Ada", "id": 1}, {"name": None, "id": 2}]
    return StageSnapshot(SHAPES[1], 1, 128, (partition(lake, "names", 0, rows),))


def checkpoint(number: int, *stages: StageSnapshot, run_id: str = RUN.run_id) -> Checkpoint:
    taken_at = NOW + timedelta(minutes=number)
    return Checkpoint(number, SnapshotKind.CHECKPOINT, "sales", "2026-01-01", run_id, taken_at, stages)


def write(lake: str, taken: Checkpoint) -> StoredCheckpoints:
    stored = StoredCheckpoints(lake, CheckpointedRun(taken.pipeline, taken.interval, taken.run_id))
    stored.write(taken, PIPELINE)
    return stored


def sample_lake(folder: Path) -> str:
    """One checkpoint, number 3."""
    lake = str(folder / "lake")
    write(lake, checkpoint(3, orders(lake), names(lake)))
    return lake
