"""Are the files that a checkpoint names still there, as large as they were? Opens none of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.lake.available import present_files
from stagehold.lake.checkpoints.encoding import RecordedPartition


@dataclass(frozen=True)
class FileTrouble:
    """A file that is gone, or has another size; ``found`` is its size now."""

    partition: int
    path: str
    bytes: int
    found: int | None


def file_troubles(partitions: Iterable[RecordedPartition]) -> tuple[FileTrouble, ...]:
    """Troubles with the files of consumable partitions' data and state. What is deleted behind the look is not seen."""
    by_table: defaultdict[str, list[RecordedPartition]] = defaultdict(list)
    for partition in partitions:
        if partition.record.state.readable:
            by_table[partition.record.table].append(partition)
    return tuple(trouble for table, partitions in by_table.items() for trouble in _of_table(table, partitions))


def _of_table(table: str, partitions: Iterable[RecordedPartition]) -> Iterable[FileTrouble]:
    files = [(partition.record.partition, file) for partition in partitions for file in partition.record.all_files]
    present = present_files(table, (file.path for _, file in files))
    return (
        FileTrouble(partition, file.path, file.bytes, present.get(file.path))
        for partition, file in files
        if present.get(file.path) != file.bytes
    )
