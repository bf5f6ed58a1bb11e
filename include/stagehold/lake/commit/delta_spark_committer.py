"""Publishes staged waves through delta-spark: Spark writes the rows that passed their gate once more, as Delta's files.

For users who want delta-spark to make every commit, and every file where VACUUM and other tools expect it. The second
write keeps rows that were not judged out of the table. Delta silently skips a write whose token is in the log already,
so the result is read back from the log each time. The staged copy is deleted once it is not needed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagehold.errors import CommitterRefused
from stagehold.lake.commit.committed_waves import Landed, read_back
from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.tokens import RetryReason, tokens_to_raise, until_done
from stagehold.lake.commit.wave_commit import Claim, WaveCommit, to_metadata, without_files
from stagehold.lake.store.columns import GROUP_PREFIX, INTERVAL, PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE, TableLocation, spark_uri

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

OUTCOME_UNKNOWN = "Spark does not say whether it wrote or skipped"
LOST_RACES = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")  # beginnings of conditions

log = logging.getLogger(__name__)


class DeltaSparkCommitter:
    """The `committer.Committer` that commits through Spark, fences included: all commits of one server take turns in
    one Java.

    Delta's log in a folder is safe among the writers of one Java. With two of them there is a moment, microseconds
    long, in which both can write the same version and one commit is lost. On an object store that moment is as long as
    the write.
    """

    def __init__(self, spark: SparkSession, location: TableLocation, *, only_writer: bool) -> None:
        """:raises CommitterRefused: on an object store, unless the user says that one Spark server is the
        ``only_writer``.
        """
        if location.uri.startswith(OBJECT_STORE) and not only_writer:
            raise CommitterRefused(location.stage, location.uri)
        self._spark = spark

    def fence(self, location: TableLocation, claim: Claim, rivals: Sequence[TableLocation] = ()) -> None:
        if not table_exists(location.uri):
            return

        def append_nothing(table: DeltaTable, landed: int) -> RetryReason:  # noqa: ARG001
            """Move the tokens on, with one empty commit for each, since Spark takes one token per commit."""
            nothing = self._spark.createDataFrame([], _columns(table))
            versions = tokens_to_raise(table, (location, *rivals), claim)
            said = [
                _save(_writer(nothing, token, version).mode("append"), location) for token, version in versions.items()
            ]
            return said[-1] if said else None

        until_done(location, claim, append_nothing)
        log.info("fenced by Spark: token=%s epoch=%d", location.token, claim.epoch)

    def publish(self, location: TableLocation, commit: WaveCommit) -> Landed:
        def replace(table: DeltaTable, landed: int) -> RetryReason:
            return None if landed >= commit.token_version else self._replace(table, location, commit)

        until_done(location, commit.claim, replace)
        landed = read_back(location, commit)
        for partition in commit.partitions:
            files_at(location.uri).delete(f"{_wave_folder(commit)}/{PARTITION}={partition.partition}")
        log.info(
            "published by Spark: token=%s epoch=%d wave=%d version=%d",
            location.token,
            commit.epoch,
            commit.wave,
            landed.version,
        )
        return landed

    def _replace(self, table: DeltaTable, location: TableLocation, commit: WaveCommit) -> str:
        """Replace the partitions. Rows stay in the order in which they were staged, by their readers' groups, and in as
        many files.
        """
        columns = _columns(table)
        groups = [name for name in columns.fieldNames() if name.startswith(GROUP_PREFIX)]
        longest = max((file.rows for partition in commit.partitions for file in partition.files), default=1)
        frame = self.staged_rows(columns, location, commit).sortWithinPartitions(PARTITION, *groups)
        writer = (
            _writer(frame, location.token, commit.token_version)
            .mode("overwrite")
            .option("replaceWhere", _predicate(location, commit))
        )
        metadata = to_metadata(without_files(commit), location.cell)
        return _save(writer.option("userMetadata", metadata).option("maxRecordsPerFile", longest), location)

    def staged_rows(self, columns: StructType, location: TableLocation, commit: WaveCommit) -> DataFrame:
        """The staged rows of the wave, for Spark to write."""
        from pyspark.sql import functions as F

        root = spark_uri(location.uri)
        paths = [f"{root}/{file.path}" for partition in commit.partitions for file in partition.files]
        if not paths:
            return self._spark.createDataFrame([], columns)
        frame = self._spark.read.schema(columns).option("basePath", f"{root}/{_wave_folder(commit)}").parquet(*paths)
        return frame if location.interval is None else frame.withColumn(INTERVAL, F.lit(location.interval))


def _writer(frame: DataFrame, token: str, version: int) -> DataFrameWriter:
    return frame.write.format("delta").option("txnAppId", token).option("txnVersion", version)


def _save(writer: DataFrameWriter, location: TableLocation) -> str:
    from pyspark.errors import PySparkException

    try:
        writer.save(spark_uri(location.uri))
    except PySparkException as error:
        if not (error.getCondition() or "").startswith(LOST_RACES):
            raise
        return str(error)
    return OUTCOME_UNKNOWN


def _columns(table: DeltaTable) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(table.schema().to_json()))


def _wave_folder(commit: WaveCommit) -> str:
    return f"{DATA_FOLDER}/{commit.attempt_id}/{commit.wave}"


def _predicate(location: TableLocation, commit: WaveCommit) -> str:
    wave = ", ".join(map(str, (*(partition.partition for partition in commit.partitions), *commit.retracted)))
    partitions = f"({PARTITION} IN ({wave}) OR {PARTITION} >= {commit.cut_into})"
    return partitions if location.interval is None else f"{INTERVAL} = {_literal(location.interval)} AND {partitions}"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
