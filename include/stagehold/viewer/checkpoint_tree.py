"""What a checkpoint consists of, with sizes at every level. Pure, and no data file is looked at.

Sums are made over columns, so a stage may have a hundred thousand partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.stage_ids import StageShape
from stagehold.lake.checkpoints.manifest import VERSION, CheckpointedRun
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.model.keys.key_groups import range_of
from stagehold.model.source_position import Position
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.model.standing import Amount, PartitionState

if TYPE_CHECKING:
    from pyarrow import Array, Table  # type: ignore[import-untyped]


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


@dataclass(frozen=True)
class CheckpointTree:
    """``version`` is that of the format, ``address`` where the manifest is. ``bytes_of_parts`` is how large the
    checkpoint itself is, but for its manifest.
    """

    version: int
    kind: SnapshotKind
    name: str | None
    number: int
    run: CheckpointedRun
    taken_at: datetime
    address: str
    bytes_of_parts: int
    stages: tuple[StageTree, ...]

    @property
    def consumable(self) -> Amount:
        """The number of consumable partitions of all stages."""
        every = [stage.consumable for stage in self.stages]
        return Amount(*(sum(getattr(amount, name) for amount in every) for name in ("partitions", "rows", "bytes")))


def checkpoint_tree(opened: OpenedCheckpoint) -> CheckpointTree:
    manifest = opened.manifest
    return CheckpointTree(
        version=VERSION,
        kind=manifest.kind,
        name=manifest.name,
        number=manifest.number,
        run=manifest.run,
        taken_at=manifest.taken_at,
        address=opened.address,
        bytes_of_parts=sum(part.bytes for part in manifest.parts),
        stages=tuple(map(stage_tree, opened.stages)),
    )


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
