"""Measures a staged wave: the query that writes it, or one pass over its files, gives the fingerprint and the metrics
of each partition.

The hash of a row is a Spark expression, so equal values have equal hashes in every process and file layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.commit.staging import StagedWave
from stagehold.lake.read import partition_of_file, read_partitions, recorded_schema
from stagehold.lake.store.columns import (
    EXPECTATION,
    FILE,
    GROUP_PREFIX,
    PARTITION,
    ROW,
    STATE_COLUMNS,
    data_fields,
    quoted,
)
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import spark_uri
from stagehold.model.keys.compute_key import digest
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

LOW_BITS = 0xFFFFFFFF  # sums of whole hashes overflow, which is an error under ANSI; these do not below 2**31 rows
HASH = f"{GROUP_PREFIX}hash"  # a reserved name, so that no column of the stage is hidden by it
# Bytes and files that one task reads in less time than it takes to bring the sums of many together. To open a file
# takes some 2 ms, however small it is.
FOR_ONE_TASK, FILES_FOR_ONE_TASK = 4 * 1024 * 1024, 64
HASH_BITS = 0xFFFFFFFFFFFFFFFF
# Partitions that a query tells apart while it writes them in less time than reading their files takes. To write and
# measure 2,000 rows, or a million, takes 0.83 to 0.95 of the time for one partition, 0.86 to 0.89 for two or four, and
# 1.03 to 1.05 for eight: each task has two expressions more for each partition, and Spark takes them row by row.
FEW = 4
OF_CONTENT = 3  # aggregates, which come first

# Spark's own default keeps milliseconds only, and follows the session's time zone.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class PartitionMetrics:
    """Equal fingerprints mean equal columns and equal rows, in whatever order and however cut into files.

    ``nulls`` are the rows that are NULL in a column, for columns that may have none.
    """

    partition: int
    rows: int
    fingerprint: str
    nulls: Mapping[str, int] = field(default_factory=dict, compare=False)


class Content(Protocol):
    """Partitions whose rows are there, and what tells their content; `StagedContent` says what each method promises."""

    def frame(self, spark: SparkSession) -> DataFrame: ...
    def aggregates(self) -> list[Column]: ...
    def metrics(self, partition: int, row: Sequence[Any] | None) -> PartitionMetrics: ...
    def bytes(self, partition: int) -> int: ...


class StagedContent:
    """A staged wave, and how its content is told. ``schema`` is that of the frame that was staged, without the columns
    that Stagehold added; rows that are NULL are counted in columns that are not nullable there.
    """

    def __init__(self, staged: StagedWave, schema: StructType) -> None:
        self.staged, self.schema = staged, schema

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows of the wave, each with the partition that it is in and its hash."""
        from pyspark.sql.types import IntegerType, StructType

        written = StructType([*self._fields]).add(PARTITION, IntegerType())
        if not self.staged.files:
            return spark.createDataFrame([], written).withColumn(HASH, content_hash(self._fields))
        frame = spark.read.schema(written).parquet(f"{spark_uri(self.staged.uri)}/{self.staged.folder}")
        files = [file for files in self.staged.files.values() for file in files]
        if len(files) <= FILES_FOR_ONE_TASK and sum(file.bytes for file in files) < FOR_ONE_TASK:
            frame = frame.coalesce(1)
        return frame.withColumn(HASH, content_hash(self._fields))

    def told_apart(self, spark: SparkSession, partitions: Sequence[int]) -> DataFrame:
        """Rows of ``partitions`` that have files, with all their columns, and what tells each of them."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import IntegerType, StructType

        columns = [field for field in self.schema.fields if field.name != PARTITION]
        written = StructType(columns).add(PARTITION, IntegerType())
        paths = [file.path for number in partitions for file in self.staged.files[number]]
        frame = spark.read.schema(written).option("basePath", f"{spark_uri(self.staged.uri)}/{self.staged.folder}")
        told = {FILE: F.col("_metadata.file_path"), ROW: F.col("_metadata.row_index")}
        return frame.parquet(*(f"{spark_uri(self.staged.uri)}/{path}" for path in paths)).withColumns(told)

    def aggregates(self) -> list[Column]:
        """The aggregates that `metrics` are read from."""
        return [*_content_aggregates(), *_null_counts(self.schema)]

    def observed(self, values: Sequence[int], partitions: Sequence[int]) -> tuple[PartitionMetrics, ...]:
        """The metrics that a query observed while it wrote the wave, of each of ``partitions``. How many rows each has
        is what its files say.

        :param values: of what `observing` asked for, behind the number of all rows.
        """
        count = len(values) // len(partitions)
        rows = {number: values[at * count : (at + 1) * count] for at, number in enumerate(partitions)}
        found = {number: (self.rows(number), *row) for number, row in rows.items()}
        return tuple(self.metrics(number, row if row[0] else None) for number, row in found.items())

    def rows(self, partition: int) -> int:
        """The rows of a partition, as its files tell."""
        return sum(file.rows for file in self.staged.files.get(partition, ()))

    def metrics(self, partition: int, row: Sequence[Any] | None) -> PartitionMetrics:
        """
        :param row: the `aggregates` of the partition; None if it has no rows.
        """
        fingerprint = _fingerprint(_columns_digest(self._fields), row[:OF_CONTENT] if row else None)
        nulls = dict(zip(_never_null(self.schema), row[OF_CONTENT:], strict=True)) if row else {}
        return PartitionMetrics(partition, row[0] if row else 0, fingerprint, nulls)

    @property
    def _fields(self) -> list[StructField]:
        return data_fields(self.schema)

    def bytes(self, partition: int) -> int:
        return sum(file.bytes for file in self.staged.files.get(partition, ()))


class RecordedContent:
    """The content of partitions that are recorded, published or not."""

    def __init__(self, records: Sequence[PartitionRecord]) -> None:
        self.records = records

    def frame(self, spark: SparkSession) -> DataFrame:
        names = [quoted(field.name) for field in self._fields]
        return (
            read_partitions(spark, self.records).select(*names, PARTITION).withColumn(HASH, content_hash(self._fields))
        )

    def aggregates(self) -> list[Column]:
        return _content_aggregates()

    def metrics(self, partition: int, row: Sequence[Any] | None) -> PartitionMetrics:
        return PartitionMetrics(partition, row[0] if row else 0, _fingerprint(_columns_digest(self._fields), row))

    def bytes(self, partition: int) -> int:
        return sum(record.bytes for record in self.records if record.partition == partition)

    @cached_property
    def _fields(self) -> list[StructField]:
        """The columns that the records are of. Behind them delta-spark wrote, as NULL, those that others had brought
        into the table.
        """
        fields = data_fields(recorded_schema(self.records))
        begins = (fields[:count] for count in range(len(fields), 0, -1))
        return next((fields for fields in begins if any(_is_of(record, fields) for record in self.records)), fields)


def measure(
    spark: SparkSession, staged: StagedWave, schema: StructType, partitions: Sequence[int]
) -> tuple[PartitionMetrics, ...]:
    """The metrics of each of ``partitions``, in that order, also of those without rows."""
    content = StagedContent(staged, schema)
    found: Mapping[int, Sequence[Any]] = {}
    if staged.files:
        found = _rows(content.frame(spark).groupBy(PARTITION).agg(*_numbered(content.aggregates())))
    return tuple(content.metrics(partition, found.get(partition)) for partition in partitions)


def observing(frame: DataFrame, schema: StructType, partitions: Sequence[int], name: str | Observation) -> DataFrame:
    """The same frame, of which the query that writes it observes, under a name, what `StagedContent.observed` reads.

    Spark adds up what tasks of a query's last stage have observed when they end well, each once, however often it was
    tried: so between this and the write there must be no shuffle.
    """
    from pyspark.sql import functions as F

    ours = {number: F.col(PARTITION) == F.lit(number) for number in partitions}
    hashes = {number: f"{HASH}_{number}" for number in partitions}
    hashed = frame.withColumn(HASH, content_hash(data_fields(schema))).withColumns(
        {hashes[number]: F.when(where, F.col(HASH)) for number, where in ours.items()}
    )
    aggregates = [
        aggregate
        for number, where in ours.items()
        for aggregate in (*_content_aggregates(hashes[number])[1:], *_null_counts(schema, where))
    ]
    return hashed.observe(name, *_numbered([F.count(F.lit(1)), *aggregates])).drop(HASH, *hashes.values())


def fingerprints(spark: SparkSession, records: Sequence[PartitionRecord]) -> dict[int, str]:
    """The fingerprints of partitions that one attempt recorded, computed from what is in their files now."""
    content = RecordedContent(records)
    found = _rows(content.frame(spark).groupBy(PARTITION).agg(*_numbered(content.aggregates())))
    each = (content.metrics(record.partition, found.get(record.partition)) for record in records)
    return {metrics.partition: metrics.fingerprint for metrics in each}


def read_log(spark: SparkSession, table: str) -> None:
    """Have Spark read a file of the table's log; none of a folder that is no table, as a savepoint's elsewhere.

    :raises Exception: what keeps it from that
    """
    if not table_exists(table):
        return
    log = spark.read.format("binaryFile").option("pathGlobFilter", "*.json").load(f"{spark_uri(table)}/_delta_log")
    log.selectExpr("hash(content)").limit(1).collect()


def state_fingerprints(spark: SparkSession, records: Sequence[PartitionRecord], name: str) -> dict[int, str]:
    """The fingerprints of what partitions keep under one name; a partition that keeps no rows has none."""
    from pyspark.sql.types import StructType

    parts = {record.partition: part for record in records for part in record.kept if part.name == name and part.files}
    files = [
        (record.table, file.path) for record in records if (part := parts.get(record.partition)) for file in part.files
    ]
    if not files:
        return {}
    written = StructType.fromJson(json.loads(read_footer(*files[0]).spark_schema))
    fields = [field for field in written.fields if field.name not in (*STATE_COLUMNS, EXPECTATION)]
    frame = spark.read.schema(StructType(fields)).parquet(*(f"{spark_uri(table)}/{path}" for table, path in files))
    hashed = frame.withColumn(PARTITION, partition_of_file()).withColumn(HASH, content_hash(fields))
    found = _rows(hashed.groupBy(PARTITION).agg(*_numbered(_content_aggregates())))
    return {partition: _fingerprint(_columns_digest(fields), found.get(partition)) for partition in parts}


def _numbered(aggregates: Sequence[Column]) -> list[Column]:
    """Values are found by position."""
    return [aggregate.alias(str(position)) for position, aggregate in enumerate(aggregates)]


def _content_aggregates(column: str = HASH) -> list[Column]:
    """Rows, and their hashes in two ways that do not depend on the order of rows."""
    from pyspark.sql import functions as F

    hashed = F.col(column)
    return [F.count(F.lit(1)), F.bit_xor(hashed), F.sum(hashed.bitwiseAND(F.lit(LOW_BITS)))]


def count_nulls(frame: DataFrame, schema: StructType) -> dict[str, int]:
    """How many rows of the frame are NULL in each column that is not nullable in ``schema``."""
    names = _never_null(schema)
    return dict(zip(names, frame.agg(*_numbered(_null_counts(schema))).collect()[0], strict=True)) if names else {}


def _null_counts(schema: StructType, where: Column | None = None) -> list[Column]:
    from pyspark.sql import functions as F

    nulls = [F.col(quoted(name)).isNull() for name in _never_null(schema)]
    return [F.count_if(null if where is None else where & null) for null in nulls]


def _never_null(schema: StructType) -> list[str]:
    return [each.name for each in data_fields(schema) if not each.nullable]


def has_columns(record: PartitionRecord, schema: StructType) -> bool:
    """Whether what is recorded has just the columns of ``schema``, whether or not its files still exist."""
    return _is_of(record, data_fields(schema))


def _is_of(record: PartitionRecord, fields: Sequence[StructField]) -> bool:
    return record.fingerprint.startswith(f"{_columns_digest(fields)}-")


def _columns_digest(fields: Sequence[StructField]) -> str:
    return digest(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def _fingerprint(columns: str, row: Sequence[Any] | None) -> str:
    rows, mixed, low = row if row and row[0] else (0, 0, 0)
    return f"{columns}-{rows}-{mixed & HASH_BITS:016x}-{low:x}"


def _rows(frame: DataFrame) -> Mapping[int, Sequence[Any]]:
    """Aggregates by partition."""
    return {partition: values for partition, *values in frame.collect()}


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
    """The value with each map as an array of its entries, sorted by key."""
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
