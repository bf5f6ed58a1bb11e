"""A hash of a row's content as a Spark expression, the same for the same values in every process and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructField

# Spark's own default keeps milliseconds only, and follows the session's time zone.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def content_hash(fields: Sequence[StructField]) -> Column:
    """xxhash64 over all columns. It skips nulls, so which columns are null is hashed as well."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(field.name)) for field in fields]
    values = [_hashable(column, field.dataType) for column, field in zip(columns, fields, strict=True)]
    return F.xxhash64(*values, *(column.isNull() for column in columns))


def _hashable(column: Column, kind: DataType) -> Column:
    """Nested values as JSON, where inner nulls are seen and maps, which cannot be hashed, are sorted by key."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType | ArrayType | MapType):
        return F.to_json(_without_maps(column, kind), JSON_OPTIONS)
    return column


def _without_maps(column: Column, kind: DataType) -> Column:
    """The same value with each map as an array of its entries, sorted by key."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return F.transform(column, lambda element: _without_maps(element, kind.elementType))
    if isinstance(kind, MapType):
        keys = F.array_sort(F.map_keys(column))
        return F.transform(
            keys, lambda key: F.struct(key.alias("key"), _without_maps(column[key], kind.valueType).alias("value"))
        )
    if isinstance(kind, StructType):
        inner = [_without_maps(column[field.name], field.dataType).alias(field.name) for field in kind.fields]
        return F.when(column.isNotNull(), F.struct(*inner))
    return column
