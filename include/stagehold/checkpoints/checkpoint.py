"""What a checkpoint or savepoint consists of: the consumable partitions and the state of every stage at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.checkpoints.stage_ids import StageShape
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.model.source_position import Position
from stagehold.model.stage_state import StateShape


class SnapshotKind(StrEnum):
    """A checkpoint belongs to the run and is dropped for newer ones; a savepoint belongs to the user and never is."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"
    STOP_WITH_SAVEPOINT = "stop_with_savepoint"

    @property
    def is_savepoint(self) -> bool:
        return self is not SnapshotKind.CHECKPOINT


@dataclass(frozen=True)
class StageSnapshot:
    """One stage in a checkpoint. ``partitions`` has the records of partitions that had any, in ascending order;
    ``parallelism`` is how many there are. ``verdicts`` are what the gate said of the partitions that have a record, in
    their order. ``states`` are what the stage keeps; what it holds is in the partitions' records.
    """

    shape: StageShape
    parallelism: int
    max_parallelism: int
    partitions: tuple[PartitionRecord, ...] = ()
    verdicts: tuple[GateResult, ...] = ()
    states: tuple[StateShape, ...] = ()
    position: Position | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing would be lost without the checkpoint."""
        return not (self.partitions or self.position)


@dataclass(frozen=True)
class Checkpoint:
    """A completed checkpoint or savepoint; stages are in topological order. ``name`` is the user's, for a savepoint."""

    id: int
    kind: SnapshotKind
    pipeline: str
    interval: str
    run_id: str
    taken_at: datetime
    stages: tuple[StageSnapshot, ...]
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name or self.id} of run {self.run_id}"
