"""Writes a wave where no reader looks: plain Parquet below the table's `_data`, one folder per attempt.

A folder whose name begins with an underscore is never touched by VACUUM, Spark's or another's. So files that were
recorded stay until we delete them, and an attempt that dies leaves nothing but files nobody reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.store.columns import PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import TableLocation, spark_uri
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DATA_FOLDER = "_data"
STATE_FOLDER = "_state"  # of a wave
SPLIT_FOLDER = "_split"  # of a wave of which rows are set aside
VERDICTS_FOLDER = "_verdicts"  # of a wave that a gate judged
# A reader of a stretch of a sorted file reads whole pages and, whatever the stretch, the dictionary of every column: so
# pages are small, and a column with so many values that its dictionary would be large has none. These sizes make eight
# readers of SF1's tables read 1.46 times what one reads; pages of 5000 rows and 64 KB make it 1.9
# (bench/shuffle_pruning.py).
EASY_TO_PRUNE = {"parquet.page.row.count.limit": "1000", "parquet.dictionary.page.size": str(8 * 1024)}
# One task for each file, which is read whole: what Spark counts for opening a file fills a task, and none is too long
# for one.
WHOLE_FILES = {"spark.sql.files.maxPartitionBytes": str(2**40), "spark.sql.files.openCostInBytes": str(2**40)}
# Every task has rows of one partition only, so they need not be sorted by it, and one integer is left to sort by, which
# Spark does by radix. A writer that may have two files open takes rows as they come, and sorts what is left once it has
# begun the second.
AS_THEY_COME = {"spark.sql.maxConcurrentOutputFileWriters": "2"}
DATA_FILE = re.compile(r"_partition=(?P<partition>[^/]+)/[^/._][^/]*\.parquet")


@dataclass(frozen=True)
class StagedWave:
    """Files written but not published. ``folder`` is relative to the table at ``uri``, as are the files' paths."""

    uri: str
    folder: str
    files: Mapping[int, tuple[DataFile, ...]]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for files in self.files.values() for file in files)


@dataclass(frozen=True)
class WaveFiles:
    """Which files are to be written for one wave, and how rows lie in them.

    A partition with more rows than ``rows_per_file`` gets several files, each a stretch of the order ``sort_by``; 0
    means no limit. ``below`` is a folder within the wave's, for rows that are not its output as it was computed.
    ``arranged`` says that all rows of a partition are in one Spark task already, which saves shuffling everything.
    """

    location: TableLocation
    attempt_id: str
    wave: int
    partitions: tuple[int, ...]
    sort_by: tuple[str, ...] = ()
    arranged: bool = False
    rows_per_file: int = 0
    below: str = ""

    @property
    def folder(self) -> str:
        """Relative to the table, as the paths of its files are."""
        wave = f"{DATA_FOLDER}/{self.attempt_id}/{self.wave}"
        return f"{wave}/{self.below}" if self.below else wave

    @property
    def begun(self) -> bool:
        """Whether there is a file yet, finished or not."""
        return bool(files_at(self.location.uri).sizes(self.folder))


def stage_frame(frame: DataFrame, files: WaveFiles) -> StagedWave:
    """Write ``frame``, cut by its column `_partition`, as one file or more for each partition.

    One without rows has no file. The same attempt and wave cannot be written twice.

    :raises StageContractBroken: when rows belong to none of the wave's partitions; what was written is deleted.
    """
    uri, sort_by = files.location.uri, files.sort_by
    cut = frame if files.arranged else frame.repartitionById(len(files.partitions), _index_within(files.partitions))
    # The marker file would be one more object to list and to delete; the commit is what says that a wave is whole.
    ordered = cut.sortWithinPartitions(*sort_by) if sort_by else cut
    writer = ordered.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").option(
        "maxRecordsPerFile", files.rows_per_file
    )
    if sort_by:
        writer = writer.options(**EASY_TO_PRUNE)
    with _with_settings(frame.sparkSession, AS_THEY_COME | (WHOLE_FILES if files.arranged else {})):
        writer.partitionBy(PARTITION).parquet(f"{spark_uri(uri)}/{files.folder}")
    written = _written(uri, files.folder)
    strangers = {name: staged_files for name, staged_files in written.items() if name not in map(str, files.partitions)}
    if strangers:
        files_at(uri).delete(files.folder)
        raise StageContractBroken(files.location.stage, _describe(strangers, files.partitions))
    return StagedWave(uri, files.folder, {int(name): files for name, files in written.items()})


@contextmanager
def _with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set these of Spark's settings for one write. Other writes do better without them: many small files in one task,
    say. They find the session as it was, with the settings that their pipeline declares. After an error the session
    ends anyway.
    """
    before = {name: spark.conf.get(name) or "" for name in settings}  # Spark has a default for each
    for name, text in settings.items():
        spark.conf.set(name, text)
    yield
    for name, text in before.items():
        spark.conf.set(name, text)


def _index_within(partitions: Sequence[int]) -> Column:
    """The position of a row's partition in ``partitions``.

    Rows of any other partition may go anywhere: the listing shows them.
    """
    from pyspark.sql import functions as F

    known = F.array(*map(F.lit, partitions))
    return F.coalesce(F.array_position(known, F.col(PARTITION)) - 1, F.lit(0)).cast("int")


def _written(uri: str, folder: str) -> Mapping[str, tuple[DataFile, ...]]:
    """The files, by the partition in their path as text, since it may be that of null keys, or no number at all."""
    found: dict[str, tuple[DataFile, ...]] = {}
    for path, size in sorted(files_at(uri).sizes(folder).items()):
        match = DATA_FILE.fullmatch(path.removeprefix(f"{folder}/"))
        if match:
            file = DataFile(path, size, read_footer(uri, path).rows)
            found[match["partition"]] = (*found.get(match["partition"], ()), file)
    return found


def _describe(strangers: Mapping[str, Sequence[DataFile]], partitions: Sequence[int]) -> str:
    rows = ", ".join(f"{sum(file.rows for file in files)} of {name}" for name, files in strangers.items())
    wanted = ", ".join(map(str, sorted(partitions)))
    return f"its output has rows of partitions it was not asked for ({rows}); it was asked for {wanted}"
