"""What a checkpoint consists of: its stages with sizes at every level, their partitions in lines, and whether the files
that it names are still there, as large as they were. No data file is opened.

Sums are made over columns, so a stage may have a hundred thousand partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stagehold.checkpoints.stage_ids import StageShape
from stagehold.lake.available import present_files
from stagehold.lake.checkpoints.encoding import RecordedPartition
from stagehold.lake.checkpoints.opened_checkpoint import OpenedStage
from stagehold.model.keys.key_groups import range_of
from stagehold.model.records import GateResult
from stagehold.model.source_position import Position
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.model.standing import Amount, PartitionState

if TYPE_CHECKING:
    from pyarrow import Array, Table  # type: ignore[import-untyped]

FOLDED_ABOVE = 100  # partitions of a stage


@dataclass(frozen=True)
class HeldPart:
    """What one partition holds of a state; ``first_group`` and ``last_group`` are those that it owns of keyed state."""

    partition: int
    rows: int
    bytes: int
    first_group: int | None = None
    last_group: int | None = None


@dataclass(frozen=True)
class StateTree:
    """A state of a stage; ``parts`` are in the order of their partitions."""

    shape: StateShape
    amount: Amount
    parts: tuple[HeldPart, ...]


@dataclass(frozen=True)
class StageTree:
    """A stage. ``amounts`` has every state that any partition is in; ``missing`` have no record."""

    shape: StageShape
    parallelism: int
    max_parallelism: int
    amounts: Mapping[PartitionState, Amount]
    missing: int
    states: tuple[StateTree, ...]
    position: Position | None

    @property
    def consumable(self) -> Amount:
        return self.amounts.get(PartitionState.CONSUMABLE, Amount())


def consumable_in(stages: Iterable[StageTree]) -> Amount:
    """What of all stages is consumable."""
    return sum((stage.consumable for stage in stages), Amount())


def stage_tree(stage: OpenedStage) -> StageTree:
    shape = stage.manifest
    return StageTree(
        shape=shape.shape,
        parallelism=shape.parallelism,
        max_parallelism=shape.max_parallelism,
        amounts=_amounts(stage.partitions),
        missing=shape.parallelism - stage.partitions.num_rows,
        states=tuple(_states(stage)),
        position=stage.position,
    )


def _amounts(partitions: Table) -> Mapping[PartitionState, Amount]:
    import pyarrow as pa

    columns = [_whole(partitions["state"]), _whole(partitions["rows"]), _bytes(_whole(partitions["files"]))]
    table = pa.Table.from_arrays(columns, names=["state", "rows", "bytes"])
    sums = table.group_by("state").aggregate([([], "count_all"), ("rows", "sum"), ("bytes", "sum")])
    found = {row["state"]: Amount(row["count_all"], row["rows_sum"], row["bytes_sum"]) for row in sums.to_pylist()}
    return {state: found[state] for state in PartitionState if state in found}


def _states(stage: OpenedStage) -> Iterable[StateTree]:
    """What consumable partitions hold."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    partitions = stage.partitions.filter(pc.equal(stage.partitions["state"], PartitionState.CONSUMABLE.value))
    kept = _whole(partitions["kept"])
    held, holders = kept.flatten(), _whole(partitions["partition"]).take(pc.list_parent_indices(kept))
    columns = {"partition": holders, "rows": held.field("rows"), "bytes": _bytes(held.field("files"))}
    for shape in stage.manifest.states:
        of_it = pc.equal(held.field("name"), shape.name)
        rows = zip(*(_list(column, of_it) for column in columns.values()), strict=True)
        parts = tuple(HeldPart(*row, *_groups(row[0], shape, stage)) for row in rows)
        sums = (sum(part.rows for part in parts), sum(part.bytes for part in parts))
        yield StateTree(shape, Amount(len(parts), *sums), parts)


def _groups(partition: int, shape: StateShape, stage: OpenedStage) -> tuple[int, int] | tuple[()]:
    if shape.kind is not StateKind.KEYED:
        return ()
    groups = range_of(partition, stage.manifest.parallelism, stage.manifest.max_parallelism)
    return groups.start, groups.stop - 1


def _bytes(files: Array) -> Array:
    """The bytes of each list of files."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = pc.subtract(files.offsets, files.offsets[0])
    until = pa.concat_arrays([offsets[:1].cast(pa.int64()), pc.cumulative_sum(files.flatten().field("bytes"))])
    ends = until.take(offsets)
    return pc.subtract(ends[1:], ends[:-1])


def _list(column: Array, chosen: Array) -> list[int]:
    numbers: list[int] = column.filter(chosen).to_pylist()
    return numbers


def _whole(column: Any) -> Array:
    return column.combine_chunks()


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


@dataclass(frozen=True)
class PartitionLine:
    """The partitions from ``first`` to ``last``, with sums. What differs among them is None."""

    first: int
    last: int
    state: PartitionState
    rows: int
    bytes: int
    version: int | None
    fingerprint: str | None
    wave: int
    seconds: float | None
    compute_key: str | None
    passed: int
    failed: tuple[GateResult, ...]
    reason: str | None


def partition_lines(partitions: Sequence[RecordedPartition], fold_above: int = FOLDED_ABOVE) -> list[PartitionLine]:
    """The lines of partitions in ascending order. More than ``fold_above`` neighbours become a single line if the same
    wave made them and the gate said the same of them.
    """
    if len(partitions) <= fold_above:
        return [_line([partition]) for partition in partitions]
    numbered = enumerate(partitions)
    return [
        _line([partition for _, partition in alike])
        for _, alike in groupby(numbered, key=lambda pair: _likeness(*pair))
    ]


def _likeness(index: int, partition: RecordedPartition) -> tuple[object, ...]:
    record, said = partition.record, tuple((verdict.expectation, verdict.passed) for verdict in partition.verdicts)
    return record.partition - index, record.state, record.attempt_id, record.wave, record.version, record.reason, said


def _line(alike: Sequence[RecordedPartition]) -> PartitionLine:
    records, first = [partition.record for partition in alike], alike[0].record
    timed = [record.seconds for record in records if record.seconds is not None]
    verdicts = [verdict for partition in alike for verdict in partition.verdicts]
    return PartitionLine(
        first=first.partition,
        last=records[-1].partition,
        state=first.state,
        rows=sum(record.rows for record in records),
        bytes=sum(record.bytes for record in records),
        version=first.version,
        fingerprint=_common(record.fingerprint for record in records),
        wave=first.wave,
        seconds=sum(timed) if timed else None,
        compute_key=_common(record.compute_key for record in records),
        passed=sum(verdict.passed for verdict in verdicts),
        failed=tuple(verdict for verdict in verdicts if not verdict.passed),
        reason=first.reason,
    )


def _common(texts: Iterable[str]) -> str | None:
    found = set(texts)
    return found.pop() if len(found) == 1 else None
