"""Reads recorded partitions from the very files that were recorded, whatever was committed to their table since.

Files are never written twice and only Stagehold deletes them, so they still hold what the version of the table held,
and Spark need not put together a snapshot of the table for every query. So readers see exactly what was published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagehold.lake.commit.delta_log import open_table
from stagehold.lake.store.columns import INTERVAL, PARTITION, is_reserved, quoted
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import spark_uri
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

# A file that an attempt wrote to a bucket, in the folder of all its files. Names that are written otherwise in an
# address are left out, as are files in hidden folders, which no listing shows.
LISTED = re.compile(r"(s3a://[\w./-]+/_data/[\w.-]+)(?:/(?:\d+|_partition=\d+))*/part-[\w.-]+", re.ASCII)
MANY = 4  # files from which that takes fewer calls
PARTITION_IN_PATH = rf".*/{PARTITION}=(\d+)/[^/]*"


def read_partitions(spark: SparkSession, records: Sequence[PartitionRecord]) -> DataFrame:
    """The rows of ``records``, at least one, whose data is there, with `_partition` and without `_interval`.

    One scan for all records whose attempts wrote the same columns. Group columns that not all of them have are dropped,
    as a reader must not take them for complete.
    """
    kept = [quoted(field.name) for field in recorded_schema(records).fields]
    return united([_scan(spark, schema, alike).select(*kept) for schema, alike in _by_schema(records).items()])


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of the frames, at least one, whose columns are told by name.

    They are united by halves. One after the other, each would be a level of the plan, and Spark refuses a plan of a
    thousand levels; and pyspark copies all that is below a level for each of them.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return united(frames[:middle]).unionByName(united(frames[middle:]))


def recorded_schema(records: Sequence[PartitionRecord]) -> StructType:
    """The columns that `read_partitions` gives, without asking Spark."""
    from pyspark.sql.types import IntegerType, StructType

    schemas = [_columns(schema) for schema in _by_schema(records)]
    common = set.intersection(*({field.name for field in schema} for schema in schemas))
    return StructType([field for field in schemas[0] if field.name in common or not is_reserved(field.name)]).add(
        PARTITION, IntegerType()
    )


def written_schemas(records: Sequence[PartitionRecord]) -> tuple[StructType, ...]:
    """The different sets of columns that the attempts of ``records`` wrote."""
    from pyspark.sql.types import StructType

    return tuple(StructType(_columns(schema)) for schema in _by_schema(records))


def table_schema(record: PartitionRecord) -> StructType:
    """The columns that the record's table had at its commit, with `_partition` and without `_interval`."""
    from pyspark.sql.types import IntegerType, StructType

    return StructType(_columns(_table_schema(record))).add(PARTITION, IntegerType())


def partition_of_file() -> Column:
    """The partition of a row from a staged file; works as long as Spark knows which file the row was read from."""
    from pyspark.sql import functions as F

    return F.regexp_extract(F.col("_metadata.file_path"), PARTITION_IN_PATH, 1).cast("int")


def _by_schema(records: Sequence[PartitionRecord]) -> Mapping[str, Sequence[PartitionRecord]]:
    """Records that have files, by the columns in them; an attempt writes the same columns in all its files.

    If no record has files, all of them are empty and have the columns of their table.
    """
    filled = [record for record in records if record.files]
    by_attempt = {record.written_by: record for record in filled}
    schemas = {
        attempt: read_footer(record.table, record.files[0].path).spark_schema for attempt, record in by_attempt.items()
    }
    found: dict[str, list[PartitionRecord]] = {}
    for record in filled:
        found.setdefault(schemas[record.written_by], []).append(record)
    return found or {_table_schema(records[-1]): records}


def _table_schema(record: PartitionRecord) -> str:
    """The schema of the table at the record's version.

    If the log no longer has that version, or it was never published, the newest schema, which can only have gained
    columns.
    """
    from deltalake.exceptions import DeltaError

    try:
        return open_table(record.table, record.version).schema().to_json()
    except DeltaError:
        return open_table(record.table).schema().to_json()


def _columns(schema: str) -> list[Any]:
    from pyspark.sql.types import StructType

    return [
        field for field in StructType.fromJson(json.loads(schema)).fields if field.name not in (INTERVAL, PARTITION)
    ]


def _scan(spark: SparkSession, schema: str, records: Sequence[PartitionRecord]) -> DataFrame:
    from pyspark.sql.types import IntegerType, StructType

    columns = StructType(_columns(schema))
    paths = [f"{spark_uri(record.table)}/{file.path}" for record in records for file in record.files]
    if not paths:
        return spark.createDataFrame([], columns.add(PARTITION, IntegerType()))
    frames = _files_read(spark, columns, paths)
    # before they are united: of rows of a union, Spark no longer knows the file
    return united([frame.withColumn(PARTITION, partition_of_file()) for frame in frames])


def _files_read(spark: SparkSession, columns: StructType, paths: Sequence[str]) -> Sequence[DataFrame]:
    """The rows of these files, at least one, in one frame or more.

    In a bucket Spark asks three times for each path that it is given, whenever it looks at the frame: so it is given
    the folder of an attempt's files, which it lists in one call, and reads those of them that are named.
    """
    folders: dict[str, list[str]] = {}
    for path in paths:
        listed = LISTED.fullmatch(path)
        folders.setdefault(listed[1] if listed else "", []).append(path)
    alone = [path for folder, inside in folders.items() if not folder or len(inside) < MANY for path in inside]
    frames = [spark.read.schema(columns).parquet(*alone)] if alone else []
    frames += [_listed(spark, columns, *each) for each in folders.items() if each[0] and len(each[1]) >= MANY]
    return frames


def _listed(spark: SparkSession, columns: StructType, folder: str, paths: Sequence[str]) -> DataFrame:
    """Files of a folder that are named by a value that Spark knows of each file before it opens it."""
    from pyspark.sql import functions as F

    every = spark.read.schema(columns).option("recursiveFileLookup", "true").parquet(folder)
    return every.where(F.col("_metadata.file_path").isin(*paths))
