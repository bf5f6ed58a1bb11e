"""Rows per file, from types first and from files later."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, DecimalType, LongType, StringType, StructType

from stagehold.lake.store.file_sizing import FileSizer
from stagehold.model.records import DataFile

SCHEMA = (
    StructType()
    .add("a", LongType())
    .add("b", BooleanType())
    .add("c", ArrayType(StringType()))
    .add("d", DecimalType(30, 2))
)


def test_before_anything_was_written_the_types_say_how_wide_a_row_is():
    assert FileSizer.guess(4100, SCHEMA).rows_per_file == 4100 // (8 + 1 + 16 + 16)


def test_what_was_written_says_it_better():
    sizer = FileSizer.guess(1000, SCHEMA).corrected_by([DataFile("x", 100, 40), DataFile("y", 100, 10)])
    assert sizer.rows_per_file == 1000 // 4


def test_files_without_rows_say_nothing():
    sizer = FileSizer.guess(1000, SCHEMA)
    assert sizer.corrected_by([]) == sizer.corrected_by([DataFile("x", 700, 0)]) == sizer


def test_a_row_larger_than_a_file_is_a_file():
    assert FileSizer(1000, 1).corrected_by([DataFile("x", 5000, 1)]).rows_per_file == 1
