"""Reads recorded partitions as they were when they were recorded, whatever was committed to their table since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from stagehold.lake.columns import INTERVAL, PARTITION, is_reserved
from stagehold.lake.delta_log import open_table
from stagehold.lake.location import spark_uri
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Share = tuple[str, str, int]  # table, interval, version


def read_partitions(spark: SparkSession, records: Sequence[PartitionRecord]) -> DataFrame:
    """The rows of ``records``, at least one and all consumable, with `_partition` and without `_interval`.

    One scan at the newest recorded version when all recorded files are live in it; else one scan per recorded version.
    Group columns that not all of those versions have are dropped, as a reader must not take them for complete.
    """
    frames = [_scan(spark, share, partitions) for share, partitions in _scans(records).items()]
    common = set.intersection(*(set(frame.columns) for frame in frames))
    kept = [frame.drop(*(column for column in frame.columns if is_reserved(column) and column not in common)) for frame in frames]
    return reduce(lambda left, right: left.unionByName(right), kept)


def _scans(records: Sequence[PartitionRecord]) -> Mapping[Share, Sequence[int]]:
    """Partitions to read by what to read them from."""
    found: dict[Share, list[int]] = defaultdict(list)
    for table in dict.fromkeys(record.table for record in records):
        own = [record for record in records if record.table == table]
        newest = max(_version(record) for record in own)
        live = _files_by_partition(table, newest, own[0].cell.interval) if len({record.version for record in own}) > 1 else None
        together = live is None or all(live[record.partition] == {file.path for file in record.files} for record in own)
        for record in own:
            found[table, record.cell.interval, newest if together else _version(record)].append(record.partition)
    return found


def _version(record: PartitionRecord) -> int:
    assert record.version is not None, f"{record.cell} {record.partition} is not consumable"
    return record.version


def _files_by_partition(table: str, version: int, interval: str) -> Mapping[int, set[str]]:
    """Live files of each partition of the interval at a version."""
    found: dict[int, set[str]] = defaultdict(set)
    for add in _adds(table, version):
        if add.get(f"partition.{INTERVAL}", interval) == interval:
            found[int(add[f"partition.{PARTITION}"])].add(add["path"])
    return found


def _adds(table: str, version: int) -> list[dict[str, Any]]:
    import pyarrow as pa  # type: ignore[import-untyped]

    adds = pa.table(open_table(table, version).get_add_actions(flatten=True))
    wanted = [name for name in adds.column_names if name == "path" or name.startswith("partition.")]
    return list(adds.select(wanted).to_pylist())


def _scan(spark: SparkSession, share: Share, partitions: Sequence[int]) -> DataFrame:
    from pyspark.sql import functions as F

    table, interval, version = share
    frame = spark.read.format("delta").option("versionAsOf", version).load(spark_uri(table)).where(F.col(PARTITION).isin(*partitions))
    return frame.where(F.col(INTERVAL) == interval).drop(INTERVAL) if INTERVAL in frame.columns else frame
