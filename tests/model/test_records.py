from __future__ import annotations

from tests.made_records import partition_record

from stagehold.model.records import DataFile


def test_the_size_of_a_partition_is_that_of_its_files():
    files = (DataFile("_data/a/1/_partition=0/x.parquet", 10, 1), DataFile("_data/a/1/_partition=0/y.parquet", 32, 2))
    assert partition_record(0, files=files).bytes == 42
