"""The rows of a Delta table's files, which do not say themselves which of them the table has deleted since (deletion
vectors), nor what their columns are called now (column mapping).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stagehold.lake.read import united
from stagehold.lake.store.columns import quoted
from stagehold.lake.store.location import spark_uri
from stagehold.model.source_position import SourceFile
from stagehold.sources.delta import PHYSICAL, ROWS_OF_A_WORD, Deleted, name_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def read_table_files(
    spark: SparkSession, schema: StructType, files: Sequence[SourceFile], deleted: Deleted
) -> DataFrame:
    """The rows of files with the table's columns. Those of one table partition are read together and given its values,
    unless some of their rows are deleted.
    """

    def apart(file: SourceFile) -> tuple[str, str]:
        return repr(file.partition), file.path if name_of(file) in deleted else ""

    parts = [list(group) for _, group in groupby(sorted(files, key=apart), key=apart)]
    return united([_part(spark, schema, part, deleted.get(name_of(part[0]), ())) for part in parts])


def _part(spark: SparkSession, schema: StructType, files: Sequence[SourceFile], gone: Sequence[int]) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    values = dict(files[0].partition)
    stored = StructType([field for field in schema.fields if field.name not in values])
    frame = spark.read.schema(_as_stored(stored)).parquet(*(spark_path(file.path) for file in files))
    if gone:
        frame = frame.where(_is_left(gone))
    columns = {
        field.name: F.lit(values[field.name]).cast(field.dataType) for field in schema.fields if field.name in values
    }
    if PHYSICAL not in schema.json():
        return frame.withColumns(columns).select(*map(quoted, schema.fieldNames())) if columns else frame
    own = {field.name: F.col(quoted(_stored_name(field))).cast(plain(field.dataType)) for field in stored.fields}
    return frame.select(*({**own, **columns}[name].alias(name) for name in schema.fieldNames()))


def _is_left(gone: Sequence[int]) -> Column:
    """Whether the table still has a row; an expression of the row's own place, so that each is judged by itself."""
    from pyspark.sql import functions as F

    row = F.col("_metadata.row_index")
    words = F.from_json(F.lit(json.dumps(gone)), "array<bigint>")
    bit = F.getbit(F.get(words, F.shiftright(row, 6).cast("int")), F.pmod(row, F.lit(ROWS_OF_A_WORD)).cast("int"))
    return F.coalesce(bit.cast("int"), F.lit(0)) == 0


def spark_path(path: str) -> str:
    """Spark takes every path for a glob."""
    return "".join(f"\\{character}" if character in "\\[]{}*?" else character for character in spark_uri(path))


def _stored_name(field: Any) -> str:
    return str((field.metadata or {}).get(PHYSICAL, field.name))


def _as_stored(kind: Any) -> Any:
    """A type with the names that files have for the fields of its structs."""
    return _renamed(kind, _stored_name)


def plain(kind: DataType) -> Any:
    """A type without what the table's metadata say of it."""
    return _renamed(kind, lambda field: str(field.name))


def _renamed(kind: Any, name: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    match kind:
        case StructType():
            return StructType(
                [
                    StructField(name(field), _renamed(field.dataType, name), field.nullable, _other_metadata(field))
                    for field in kind.fields
                ]
            )
        case ArrayType():
            return ArrayType(_renamed(kind.elementType, name), kind.containsNull)
        case MapType():
            return MapType(_renamed(kind.keyType, name), _renamed(kind.valueType, name), kind.valueContainsNull)
    return kind


def _other_metadata(field: Any) -> dict[str, Any]:
    return {name: said for name, said in (field.metadata or {}).items() if not name.startswith("delta.columnMapping.")}
