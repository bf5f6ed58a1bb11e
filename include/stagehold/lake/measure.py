"""Measures a staged wave: one pass over its files gives each partition's fingerprint and metrics."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stagehold.lake.columns import GROUP_PREFIX, PARTITION, STATE_COLUMNS, data_fields, quoted
from stagehold.lake.commit.staging import StagedWave
from stagehold.lake.content_hash import content_hash
from stagehold.lake.footers import read_footer
from stagehold.lake.location import spark_uri
from stagehold.lake.read import partition_of_file, read_partitions, recorded_schema
from stagehold.model.compute_key import digest
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

Scalar = int | float | Decimal | str | date | datetime

LOW_BITS = 0xFFFFFFFF  # sums of whole hashes overflow, which is an error under ANSI; these do not below 2**31 rows
HASH = f"{GROUP_PREFIX}hash"  # a reserved name, so that no column of the stage is hidden by it
# bytes; one task reads them in less time than it takes to bring the sums of many together
FOR_ONE_TASK = 4 * 1024 * 1024
HASH_BITS = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True)
class ColumnMetrics:
    """What a gate can judge of one column in one partition; None where the type has no such thing, or all is null.

    ``minimum`` and ``maximum`` are for numbers, texts, dates and timestamps, ``total`` is for numbers.
    """

    name: str
    nulls: int
    minimum: Scalar | None = None
    maximum: Scalar | None = None
    total: Scalar | None = None


@dataclass(frozen=True)
class PartitionMetrics:
    """Equal fingerprints mean equal columns and equal rows, in any order and however cut into files."""

    partition: int
    rows: int
    fingerprint: str
    columns: tuple[ColumnMetrics, ...]


def measure(
    spark: SparkSession, staged: StagedWave, schema: StructType, partitions: Sequence[int], judged: Collection[str]
) -> tuple[PartitionMetrics, ...]:
    """Metrics of each of ``partitions``, in that order; one without rows has them too.

    ``schema`` is that of the frame that was staged. Columns that Stagehold added do not count, and only those that are
    to be ``judged`` are measured one by one: adding them all up would take longer than the fingerprint does.
    """
    fields = data_fields(schema)
    wanted = [field for field in fields if field.name in judged]
    typed = any(field.dataType.typeName() == "timestamp" for field in wanted)
    measured = _rows(_aggregated(spark, staged, fields, wanted), typed=typed) if staged.files else {}
    columns = _columns_digest(fields)
    return tuple(
        _metrics(partition, measured.get(partition), wanted, columns, _texts(staged, partition, wanted))
        for partition in partitions
    )


def fingerprints(spark: SparkSession, records: Sequence[PartitionRecord]) -> dict[int, str]:
    """Fingerprints of partitions that one attempt recorded, by what is in their files now."""
    from pyspark.sql import functions as F

    fields = data_fields(recorded_schema(records))
    hashed = read_partitions(spark, records).withColumn(HASH, content_hash(fields))
    found = _rows(hashed.groupBy(F.col(PARTITION)).agg(*_numbered(_content_aggregates())), typed=False)
    return {record.partition: _fingerprint(_columns_digest(fields), found.get(record.partition)) for record in records}


def state_fingerprints(spark: SparkSession, records: Sequence[PartitionRecord], name: str) -> dict[int, str]:
    """The same of what they keep under one name; nothing of partitions that keep no rows."""
    from pyspark.sql.types import StructType

    parts = {one.partition: part for one in records for part in one.kept if part.name == name and part.files}
    files = [(one.table, file.path) for one in records if (part := parts.get(one.partition)) for file in part.files]
    if not files:
        return {}
    written = StructType.fromJson(json.loads(read_footer(*files[0]).spark_schema))
    fields = [field for field in written.fields if field.name not in STATE_COLUMNS]
    frame = spark.read.schema(StructType(fields)).parquet(*(f"{spark_uri(table)}/{path}" for table, path in files))
    hashed = frame.withColumn(PARTITION, partition_of_file()).withColumn(HASH, content_hash(fields))
    found = _rows(hashed.groupBy(PARTITION).agg(*_numbered(_content_aggregates())), typed=False)
    return {partition: _fingerprint(_columns_digest(fields), found.get(partition)) for partition in parts}


def _numbered(aggregates: Sequence[Column]) -> list[Column]:
    """Values are found by position."""
    return [aggregate.alias(str(position)) for position, aggregate in enumerate(aggregates)]


def _content_aggregates() -> list[Column]:
    """Rows, and their hashes in two ways that do not depend on the order of rows."""
    from pyspark.sql import functions as F

    hashed = F.col(HASH)
    return [F.count(F.lit(1)), F.bit_xor(hashed), F.sum(hashed.bitwiseAND(F.lit(LOW_BITS)))]


def _columns_digest(fields: Sequence[StructField]) -> str:
    return digest(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def _fingerprint(columns: str, row: Sequence[Any] | None) -> str:
    rows, mixed, low = row[:3] if row else (0, 0, 0)
    return f"{columns}-{rows}-{mixed & HASH_BITS:016x}-{low:x}"


def _aggregated(
    spark: SparkSession, staged: StagedWave, fields: Sequence[StructField], wanted: Sequence[StructField]
) -> DataFrame:
    """One row per partition; values are found by position, since column names may hold anything."""
    from pyspark.sql.types import IntegerType, StructType

    written = StructType([*fields]).add(PARTITION, IntegerType())
    frame = spark.read.schema(written).parquet(f"{spark_uri(staged.uri)}/{staged.folder}")
    if sum(file.bytes for files in staged.files.values() for file in files) < FOR_ONE_TASK:
        frame = frame.coalesce(1)
    aggregates = _content_aggregates()
    for field in wanted:
        aggregates += _aggregates(field)
    named = [aggregate.alias(str(position)) for position, aggregate in enumerate(aggregates)]
    return frame.withColumn(HASH, content_hash(fields)).groupBy(PARTITION).agg(*named)


def _rows(frame: DataFrame, *, typed: bool) -> Mapping[int, Sequence[Any]]:
    """Aggregates by partition. ``typed`` ones come by Arrow, one more call: rows lose the zone of timestamps."""
    if not typed:
        return {partition: values for partition, *values in frame.collect()}
    columns = [column.to_pylist() for column in frame.toArrow().columns]
    return {partition: values for partition, *values in zip(*columns, strict=True)}


def _aggregates(field: StructField) -> list[Column]:
    """Nulls, minimum, maximum and total, of which the last three are null where the type has no such thing."""
    from pyspark.sql import functions as F

    column, none = F.col(quoted(field.name)), F.lit(None)
    number = _is_number(field)
    ordered = number or field.dataType.typeName() in ("date", "timestamp", "timestamp_ntz")
    return [
        F.count_if(column.isNull()),
        F.min(column if ordered else none),
        F.max(column if ordered else none),
        F.try_sum(column if number else none.cast("bigint")),
    ]


def _is_number(field: StructField) -> bool:
    from pyspark.sql.types import NumericType

    return isinstance(field.dataType, NumericType)


def _metrics(
    partition: int,
    row: Sequence[Any] | None,
    fields: Sequence[StructField],
    columns: str,
    texts: Mapping[str, tuple[str, str]],
) -> PartitionMetrics:
    values = [row[start : start + 4] if row else (0, None, None, None) for start in range(3, 3 + 4 * len(fields), 4)]
    columns_found = tuple(_column(field.name, found, texts) for field, found in zip(fields, values, strict=True))
    return PartitionMetrics(partition, row[0] if row else 0, _fingerprint(columns, row), columns_found)


def _column(name: str, values: Sequence[Any], texts: Mapping[str, tuple[str, str]]) -> ColumnMetrics:
    nulls, minimum, maximum, total = values
    if name in texts:
        minimum, maximum = texts[name]
    return ColumnMetrics(name, nulls, minimum, maximum, total)


def _texts(staged: StagedWave, partition: int, fields: Sequence[StructField]) -> dict[str, tuple[str, str]]:
    """Least and greatest text per column, from the footers: aggregating text would double the cost of the pass."""
    texts = [field.name for field in fields if field.dataType.typeName() == "string"]
    if not texts:
        return {}
    footers = [read_footer(staged.uri, file.path) for file in staged.files.get(partition, ())]
    found = {}
    for name in texts:
        ranges = [footer.columns[name] for footer in footers if footer.columns[name].nulls != footer.rows]
        if ranges and all(isinstance(one.minimum, str) for one in ranges):
            found[name] = (min(one.minimum for one in ranges), max(one.maximum for one in ranges))
    return found
