from __future__ import annotations

from datetime import UTC, datetime

from stagehold.model.records import Cell, DataFile, PartitionRecord
from stagehold.model.standing import PartitionState


def test_the_size_of_a_partition_is_that_of_its_files():
    files = (DataFile("_data/a/1/_partition=0/x.parquet", 10, 1), DataFile("_data/a/1/_partition=0/y.parquet", 32, 2))
    record = PartitionRecord(
        cell=Cell("p", "s", "i"),
        partition=0,
        state=PartitionState.CONSUMABLE,
        run_id="r",
        attempt_id="a",
        epoch=1,
        wave=1,
        table="t",
        version=1,
        files=files,
        rows=3,
        fingerprint="f",
        compute_key="k",
        recorded_at=datetime(2026, 11, 20, tzinfo=UTC),
    )
    assert record.bytes == 42
