"""A stored checkpoint for who only looks at it: its partitions stay columns until the record of one is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.checkpoints.checkpoint import Checkpoint, StageSnapshot
from stagehold.errors import CheckpointCorrupt, UnknownName
from stagehold.lake.checkpoints.encoding import RecordedPartition, records_in, rows_of_stage, table_of
from stagehold.lake.checkpoints.manifest import CheckpointedRun, Manifest, StageManifest
from stagehold.model.source_position import Position

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]


@dataclass(frozen=True)
class OpenedStage:
    """``partitions`` has one row for each that has a record, in ascending order, as `encoding` writes them. It and
    ``position`` have the addresses of a lake that was moved as they are now.
    """

    manifest: StageManifest
    partitions: Table
    position: Position | None

    @property
    def name(self) -> str:
        return self.manifest.shape.name


@dataclass(frozen=True)
class OpenedCheckpoint:
    """``address`` is that of its manifest, and empty if nobody has written it; ``lake`` is the root under which it is
    found now.
    """

    manifest: Manifest
    address: str
    lake: str
    stages: tuple[OpenedStage, ...]

    @staticmethod
    def unwritten(checkpoint: Checkpoint, lake: str) -> OpenedCheckpoint:
        """A checkpoint that is looked at and not written."""
        stages = tuple(_unwritten(stage) for stage in checkpoint.stages)
        run = CheckpointedRun(checkpoint.pipeline, checkpoint.interval, checkpoint.run_id)
        manifest = Manifest(
            number=checkpoint.id,
            kind=checkpoint.kind,
            name=checkpoint.name,
            run=run,
            lake=lake,
            taken_at=checkpoint.taken_at,
            spec={},
            stages=tuple(stage.manifest for stage in stages),
        )
        return OpenedCheckpoint(manifest, "", lake, stages)

    def stage(self, name: str) -> OpenedStage:
        """The stage of this name, or else of this id.

        :raises UnknownName: there is none.
        """
        named = {stage.name: stage for stage in self.stages}
        found = named.get(name) or next((stage for stage in self.stages if stage.manifest.shape.id == name), None)
        if found is None:
            raise UnknownName(f"stage of checkpoint {self.manifest.number}", name, tuple(named))
        return found

    def records(self, stage: OpenedStage) -> tuple[RecordedPartition, ...]:
        """
        :raises CheckpointCorrupt: a row says what cannot be.
        """
        try:
            return records_in(stage.partitions)
        except ValueError as error:
            raise CheckpointCorrupt(self.manifest.number, f"a part of {self.address} is wrong ({error})") from error


def _unwritten(stage: StageSnapshot) -> OpenedStage:
    cut = (stage.parallelism, stage.max_parallelism)
    manifest = StageManifest(stage.shape, *cut, parts=(), states=stage.states, position=stage.position)
    return OpenedStage(manifest, table_of(rows_of_stage(stage)), stage.position)
