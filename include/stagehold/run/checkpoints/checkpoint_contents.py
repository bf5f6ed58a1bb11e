"""What goes into a checkpoint: all records in the ledger that are new since the checkpoint that it builds on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.checkpoints.checkpoint import Checkpoint, SnapshotKind, StageSnapshot
from stagehold.checkpoints.stage_ids import stage_shapes
from stagehold.lake.checkpoints.manifest import Manifest
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.copying import copy_files
from stagehold.lake.store.files import files_at
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult, PartitionRecord
from stagehold.run.planning.planning import RunRequest, counted, in_its_form
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.output_settings import CommitterKind

FEW = 1000  # partitions that one query may name
OWN_FOLDER = "_savepoints"  # below a table: files that savepoints need and that others could delete elsewhere


# The checkpoint that the next one builds on, and the row id up to which it covers records; 0 if that is unknown.
Base = tuple[Manifest, int]


class Changes:
    """Rows of `partitions` up to ``upto`` that ``base`` does not have; all rows of a stage that it does not have, or
    that was cut differently.
    """

    def __init__(self, pipeline: Pipeline, interval: str, ledger: Ledger, base: Base | None, upto: int) -> None:
        self.pipeline, self.interval, self.ledger, self.base = pipeline, interval, ledger, base
        self.upto = upto

    def snapshots(self) -> Iterator[StageSnapshot]:
        changed = self._between(self.base[1] if self.base else 0)
        for stage, shape in zip(self.pipeline.stages, stage_shapes(self.pipeline), strict=True):
            continues = self.base and self.base[0].continued(shape.id, stage.partitions, stage.max_parallelism)
            found = changed if continues or not self.base else self._between(0)
            records = tuple(record for record in found.get(stage.id, ()) if record.partition < stage.partitions)
            cell = Cell(self.pipeline.name, stage.id, self.interval)
            yield StageSnapshot(
                shape=shape,
                parallelism=stage.partitions,
                max_parallelism=stage.max_parallelism,
                partitions=records,
                verdicts=self._verdicts(stage, cell, records),
                states=stage.states,
                position=self.ledger.positions.taken_by(cell) if stage.source else None,
            )

    def whole(self, stage_id: str) -> Sequence[PartitionRecord]:
        """The newest record of each partition of a stage, whatever the base has."""
        return self._between(0).get(stage_id, ())

    def _between(self, after: int) -> Mapping[str, Sequence[PartitionRecord]]:
        return self.ledger.partitions.between(self.pipeline.name, self.interval, after=after, upto=self.upto)

    def _verdicts(self, stage: Stage, cell: Cell, records: tuple[PartitionRecord, ...]) -> tuple[GateResult, ...]:
        """The verdicts on these partitions. Verdicts are recorded with their partitions, so a partition without a new
        record has no new verdicts.
        """
        if not stage.gate or not records:
            return ()
        few = {record.partition for record in records} if len(records) <= FEW else None
        return self.ledger.gates.newest(cell, few)


def as_of_now(request: RunRequest, ledger: Ledger) -> Checkpoint:
    """What a checkpoint of the run would have in it now, at one moment; it is nobody's, and has no number."""
    pipeline = counted(in_its_form(request, ledger), ledger).pipeline
    now, upto = datetime.now(UTC), ledger.partitions.newest_id(pipeline.name, request.interval)
    stages = tuple(Changes(pipeline, request.interval, ledger, None, upto).snapshots())
    return Checkpoint(0, SnapshotKind.CHECKPOINT, pipeline.name, request.interval, request.run_id, now, stages)


def protected(changes: Changes, savepoint: str) -> Iterator[StageSnapshot]:
    """The contents of a savepoint. Files of delta-spark are in a place where any VACUUM may delete them, so they are
    copied to a place of our own. Then all records of the stage are given, since records of the base name the originals.
    """
    for stage, snapshot in zip(changes.pipeline.stages, changes.snapshots(), strict=True):
        if stage.output.committer is CommitterKind.DELTA_SPARK:
            every = [record for record in changes.whole(stage.id) if record.partition < snapshot.parallelism]
            yield replace(snapshot, partitions=tuple(_copied(record, savepoint) for record in every))
        else:
            yield snapshot


def delete_copies(checkpoint: Checkpoint, savepoint: str) -> None:
    """Delete the files that were copied for a savepoint, and no others."""
    own = f"{OWN_FOLDER}/{savepoint}"
    records = (record for stage in checkpoint.stages for record in stage.partitions)
    for table in {record.table for record in records if any(file.path.startswith(own) for file in record.files)}:
        files_at(table).delete(own)


def _copied(record: PartitionRecord, savepoint: str) -> PartitionRecord:
    """The record with copied files. State and staged files are in a folder that nobody else touches, and are not
    copied.
    """
    if not record.state.readable:
        return record
    paths = {
        file.path: f"{OWN_FOLDER}/{savepoint}/{file.path}"
        for file in record.files
        if not file.path.startswith(f"{DATA_FOLDER}/")
    }
    table = files_at(record.table)
    copy_files(table, table, paths)
    return replace(record, files=tuple(replace(file, path=paths.get(file.path, file.path)) for file in record.files))
