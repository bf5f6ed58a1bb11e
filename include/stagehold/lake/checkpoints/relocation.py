"""A lake that lies somewhere else than when a checkpoint of it was written: what was below its root has moved along."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.model.records import PartitionRecord
from stagehold.model.source_position import FilesRead, Position, SourceFile


@dataclass(frozen=True)
class Relocation:
    """From the root that a checkpoint names to the one that it is found under; what lay outside stayed where it was."""

    before: str
    now: str

    def snapshot(self, stage: StageSnapshot) -> StageSnapshot:
        if self.before == self.now:
            return stage
        partitions = tuple(map(self._record, stage.partitions))
        return replace(stage, partitions=partitions, position=stage.position and self.position(stage.position))

    def moved(self, uri: str) -> str:
        below = uri.removeprefix(f"{self.before}/")
        return uri if below == uri else f"{self.now}/{below}"

    def position(self, position: Position) -> Position:
        if not isinstance(position, FilesRead):
            return position
        return replace(position, files=tuple(map(self._source_file, position.files)))

    def _record(self, record: PartitionRecord) -> PartitionRecord:
        return replace(record, table=self.moved(record.table))

    def _source_file(self, file: SourceFile) -> SourceFile:
        return replace(file, path=self.moved(file.path))
