"""Creates a stage's table and keeps its columns those of the stage's output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stagehold.errors import TableSchemaConflict
from stagehold.lake.columns import INTERVAL, PARTITION, refuse_unusable_columns
from stagehold.lake.delta_log import open_table, schema_fields, table_exists
from stagehold.lake.location import TableLocation, spark_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Recorded versions stay readable for as long as their records: Spark refuses to read what is older than the first.
PROPERTIES = {
    "delta.deletedFileRetentionDuration": "interval 3650 days",
    "delta.logRetentionDuration": "interval 3650 days",
}


def ensure_table(spark: SparkSession, location: TableLocation, schema: StructType) -> None:
    """Create the table, or give it the columns of ``schema``, which has `_partition`.

    A stage's own table takes any schema; its earlier versions stay readable as they were. A published one only gains
    columns. Two attempts may do this at once: the later one finds the table made. What remains on an object store,
    where Spark's log store does not detect it, is two first creations with different schemas within one second.

    :raises StageContractBroken: when a column cannot be stored.
    :raises TableSchemaConflict: when a published table would lose or change columns; nothing is changed.
    """
    from pyspark.errors import PySparkException

    refuse_unusable_columns(location.stage, schema)
    wanted = _table_schema(location, schema)
    try:
        _bring_about(spark, location, wanted)
    except PySparkException:
        # If that was because another interval made or changed the table just now, there is less to do, or nothing.
        _bring_about(spark, location, wanted)


def _bring_about(spark: SparkSession, location: TableLocation, wanted: StructType) -> None:
    if not table_exists(location.uri):
        _write_no_rows(spark, location, wanted, "append", PROPERTIES)
    present = schema_fields(open_table(location.uri))
    if location.interval is not None:
        _add_columns(spark, location, wanted, present)
    elif list(present.items()) != list(_types(wanted).items()):
        _write_no_rows(spark, location, wanted, "overwrite", {"overwriteSchema": "true"})


def _write_no_rows(spark: SparkSession, location: TableLocation, schema: StructType, mode: str, options: Mapping[str, str]) -> None:
    """Change the table's columns. Not by SQL: it trusts a cache that still knows tables whose folder was deleted."""
    partitioning = [PARTITION] if location.interval is None else [INTERVAL, PARTITION]
    writer = spark.createDataFrame([], schema).write.format("delta").mode(mode).options(**options)
    writer.partitionBy(*partitioning).save(spark_uri(location.uri))


def _table_schema(location: TableLocation, schema: StructType) -> StructType:
    from pyspark.sql.types import StringType, StructType

    nullable = StructType(schema.fields).toNullable()
    return nullable if location.interval is None else nullable.add(INTERVAL, StringType())


def _types(schema: StructType) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in schema.jsonValue()["fields"]}


def _add_columns(spark: SparkSession, location: TableLocation, wanted: StructType, present: dict[str, Any]) -> None:
    types = _types(wanted)
    missing = [name for name in present if name not in types]
    changed = [name for name, kind in types.items() if name in present and present[name] != kind]
    if missing or changed:
        raise TableSchemaConflict(location.stage, location.uri, missing=missing, changed=changed)
    if len(types) > len(present):
        _write_no_rows(spark, location, wanted, "append", {"mergeSchema": "true"})
