"""Writes a wave where no reader looks: plain Parquet below the table's `_data`, one folder per attempt.

A folder whose name begins with an underscore is never touched by VACUUM, Spark's or another's. So files that were
recorded stay until we delete them, and an attempt that dies leaves nothing but files nobody reads.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.store.columns import PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.footers import read_footers
from stagehold.lake.store.location import FILES_BY, TableLocation, spark_uri
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DATA_FOLDER = "_data"
SCRIPT_FOLDER = "script"  # of an attempt, to which a stage's script writes before its rows are staged
STATE_FOLDER = "_state"  # of a wave
SPLIT_FOLDER = "_split"  # of a wave of which rows are set aside
VERDICTS_FOLDER = "_verdicts"  # of a wave that a gate judged
# A reader of a stretch of a sorted file reads whole pages and, whatever the stretch, the dictionary of every column: so
# pages are small, and a column with so many values that its dictionary would be large has none. These sizes make eight
# readers of SF1's tables read 1.46 times what one reads; pages of 5000 rows and 64 KB make it 1.9
# (bench/shuffle_pruning.py).
EASY_TO_PRUNE = {"parquet.page.row.count.limit": "1000", "parquet.dictionary.page.size": str(8 * 1024)}
# One task for each file, which is read whole: what Spark counts for opening a file fills a task, and none is too long
# for one. And one for each frame of a union: frames of one task each would come together in a single task.
WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(2**40),
    "spark.sql.files.openCostInBytes": str(2**40),
    "spark.sql.unionOutputPartitioning": "false",
}
# A task with rows of one partition only need not sort them by it, and one integer is left to sort by, which Spark does
# by radix. A writer that may have two files open takes rows as they come, and sorts what is left once it has begun the
# second: not by ``sort_by``, so a task with several partitions sorts its rows itself, and has one file open.
AS_THEY_COME = {"spark.sql.maxConcurrentOutputFileWriters": "2"}
ONE_AFTER_THE_OTHER = {"spark.sql.maxConcurrentOutputFileWriters": "0"}
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
    ``starts`` are the lowest partitions of the Spark tasks that write, ascending: a task writes those from its own up
    to the next one's. Without any, each partition has a task of its own.
    """

    location: TableLocation
    attempt_id: str
    wave: int
    partitions: tuple[int, ...]
    sort_by: tuple[str, ...] = ()
    arranged: bool = False
    rows_per_file: int = 0
    below: str = ""
    starts: tuple[int, ...] = ()

    @property
    def folder(self) -> str:
        """Relative to the table, as the paths of its files are."""
        wave = f"{DATA_FOLDER}/{self.attempt_id}/{self.wave}"
        return f"{wave}/{self.below}" if self.below else wave

    @property
    def first_of_tasks(self) -> tuple[int, ...]:
        """The lowest partition that each task writes, ascending. Of a part of a wave, some tasks have none."""
        ascending, first = sorted(self.partitions), dict[int, int]()
        for partition in ascending:
            first.setdefault(bisect_right(self.starts or ascending, partition), partition)
        return tuple(first.values())

    @property
    def begun(self) -> bool:
        """Whether there is a file yet, finished or not."""
        return bool(files_at(self.location.uri).sizes(self.folder))


def stage_frame(
    frame: DataFrame, files: WaveFiles, observed: Callable[[DataFrame], DataFrame] | None = None
) -> StagedWave:
    """Write ``frame``, cut by its column `_partition`, as one file or more for each partition.

    One without rows has no file. The same attempt and wave cannot be written twice.

    :param observed: what is done to the frame once no shuffle follows, so in the tasks that write.
    :raises StageContractBroken: when rows belong to none of the wave's partitions; what was written is deleted.
    """
    uri, tasks = files.location.uri, files.first_of_tasks
    shared = len(tasks) < len(files.partitions)
    cut, order = _in_tasks(frame, tasks, files), (*((PARTITION,) if shared else ()), *files.sort_by)
    cut = observed(cut) if observed else cut
    # The marker file would be one more object to list and to delete; the commit is what says that a wave is whole.
    ordered = cut.sortWithinPartitions(*order) if order else cut
    writer = ordered.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").option(
        "maxRecordsPerFile", files.rows_per_file
    )
    if files.sort_by:
        writer = writer.options(**EASY_TO_PRUNE)
    if files_by := frame.sparkSession.conf.get(FILES_BY, ""):
        writer = writer.options(**{"fs.file.impl": files_by, "fs.file.impl.disable.cache": "true"})
    taken = ONE_AFTER_THE_OTHER if shared else AS_THEY_COME
    with _with_settings(frame.sparkSession, taken | (WHOLE_FILES if files.arranged else {})):
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


def _in_tasks(frame: DataFrame, starts: Sequence[int], files: WaveFiles) -> DataFrame:
    """The frame with all rows of a partition in the same task.

    Frames that are arranged are only given to fewer tasks, which compute one after the other.
    """
    from pyspark.sql import functions as F

    if not files.arranged:
        return frame.repartitionById(len(starts), _task_of(F.col(PARTITION), starts))
    return frame.coalesce(len(starts)) if len(starts) < len(files.partitions) else frame


def _task_of(partition: Column, starts: Sequence[int], before: int = 0) -> Column:
    """The task that writes a partition, found by halves: a list of thousands would be gone through for each row.

    Rows of partitions that are none of the wave's may go anywhere: the listing shows them.
    """
    from pyspark.sql import functions as F

    if len(starts) == 1:
        return F.lit(before)
    middle = len(starts) // 2
    lower, upper = _task_of(partition, starts[:middle], before), _task_of(partition, starts[middle:], before + middle)
    return F.when(partition < F.lit(starts[middle]), lower).otherwise(upper)


def _written(uri: str, folder: str) -> Mapping[str, tuple[DataFile, ...]]:
    """The files, by the partition in their path as text, since it may be that of null keys, or no number at all."""
    there = sorted(files_at(uri).sizes(folder).items())
    matches = {path: DATA_FILE.fullmatch(path.removeprefix(f"{folder}/")) for path, _ in there}
    data = [(path, size, match["partition"]) for path, size in there if (match := matches[path])]
    footers = read_footers(uri, [path for path, _, _ in data])
    found: dict[str, list[DataFile]] = defaultdict(list)
    for (path, size, partition), footer in zip(data, footers, strict=True):
        found[partition].append(DataFile(path, size, footer.rows))
    return {partition: tuple(files) for partition, files in found.items()}


def _describe(strangers: Mapping[str, Sequence[DataFile]], partitions: Sequence[int]) -> str:
    rows = ", ".join(f"{sum(file.rows for file in files)} of {name}" for name, files in strangers.items())
    wanted = ", ".join(map(str, sorted(partitions)))
    return f"its output has rows of partitions it was not asked for ({rows}); it was asked for {wanted}"
