"""A lake that was moved since a checkpoint of it was written: everything below its root has moved along with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.model.records import PartitionRecord
from stagehold.model.source_position import FilesRead, Position, SourceFile

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Relocation:
    """From the root that a checkpoint names to the root under which it is found now. What lay outside that root stayed
    where it was.
    """

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

    def table(self, partitions: Table) -> Table:
        """Partitions as columns, with the present addresses of their tables."""
        import pyarrow as pa

        if self.before == self.now:
            return partitions
        tables = partitions["table"].combine_chunks().dictionary_encode()
        moved = pa.DictionaryArray.from_arrays(tables.indices, [*map(self.moved, tables.dictionary.to_pylist())])
        place = partitions.schema.get_field_index("table")
        return partitions.set_column(place, partitions.schema.field(place), moved.cast(pa.string()))

    def position(self, position: Position) -> Position:
        if not isinstance(position, FilesRead):
            return position
        mixed = position.mixed
        samples = mixed and replace(mixed, samples=tuple(map(self.moved, mixed.samples)))
        return replace(position, files=tuple(map(self._source_file, position.files)), mixed=samples)

    def _record(self, record: PartitionRecord) -> PartitionRecord:
        return replace(record, table=self.moved(record.table))

    def _source_file(self, file: SourceFile) -> SourceFile:
        return replace(file, path=self.moved(file.path))
