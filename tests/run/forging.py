"""Recorded data becomes something else behind everybody's back."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from stagehold.model.records import PartitionRecord


def forge(record: PartitionRecord) -> None:
    """Other numbers in a valid file of the same size, so that no listing can tell."""
    path = Path(record.table, record.files[0].path)
    size, spark_schema = path.stat().st_size, pq.read_metadata(path).metadata
    forged = pq.ParquetFile(path).read()
    column = forged.schema.get_field_index("number")
    forged = forged.set_column(column, "number", pc.add(forged["number"], 7)).replace_schema_metadata(spark_schema)
    pq.write_table(forged, path, compression="zstd", write_statistics=False, store_schema=False)
    written = path.read_bytes()
    footer = int.from_bytes(written[-8:-4], "little") + 8
    assert len(written) <= size
    path.write_bytes(written[:-footer] + bytes(size - len(written)) + written[-footer:])
