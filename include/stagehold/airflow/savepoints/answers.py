"""What the routes of savepoints say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.lake.available import missing_files
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import SavepointRequest

INTERVALS = 20  # whose checkpoints are told, those that were worked on last


@dataclass(frozen=True)
class SavepointLine:
    """One savepoint. ``manifest`` is the address of its checkpoint."""

    name: str
    pipeline: str
    interval: str
    run_id: str
    number: int
    created_by: str
    reason: str
    created_at: datetime
    imported: bool
    manifest: str

    @staticmethod
    def of(one: Savepoint, savepoints: Savepoints) -> SavepointLine:
        return SavepointLine(
            name=one.name,
            pipeline=one.pipeline,
            interval=one.interval,
            run_id=one.run_id,
            number=one.number,
            created_by=one.created_by,
            reason=one.reason,
            created_at=one.created_at,
            imported=bool(one.root),
            manifest=savepoints.stored(one).address(one.number),
        )


@dataclass(frozen=True)
class SavedStage:
    """What a savepoint has of a stage; the data of ``missing`` partitions is gone."""

    stage: str
    partitions: int
    consumable: int
    rows: int
    bytes: int
    missing: tuple[int, ...]


@dataclass(frozen=True)
class SavepointFacts:
    savepoint: SavepointLine
    stages: tuple[SavedStage, ...]

    @staticmethod
    def of(one: Savepoint, savepoints: Savepoints) -> SavepointFacts:
        """:raises CheckpointCorrupt: what it consists of cannot be read."""
        stages = savepoints.stored(one).read_checkpoint(one.number).stages
        present = {
            stage.shape.name: [record for record in stage.partitions if record.state.readable] for stage in stages
        }
        return SavepointFacts(
            SavepointLine.of(one, savepoints),
            tuple(
                SavedStage(
                    stage=stage.shape.name,
                    partitions=stage.parallelism,
                    consumable=len(records := present[stage.shape.name]),
                    rows=sum(record.rows for record in records),
                    bytes=sum(record.bytes for record in records),
                    missing=tuple(sorted(missing_files(records))),
                )
                for stage in stages
            ),
        )


class Making(StrEnum):
    """How far a savepoint is that was asked for."""

    PENDING = "pending"
    MADE = "made"
    FAILED = "failed"


@dataclass(frozen=True)
class SavepointStatus:
    """What became of a wish for a savepoint. ``failure`` says why there is none."""

    name: str
    run_id: str
    state: Making
    requested_by: str
    stop: bool
    savepoint: SavepointLine | None = None
    failure: str | None = None

    @staticmethod
    def of(asked: SavepointRequest, made: SavepointLine | None) -> SavepointStatus:
        """The lake says whether it is made: it may have been there before."""
        state = Making.MADE if made else Making.PENDING if asked.settled_at is None else Making.FAILED
        failure = None if made else asked.failure
        return SavepointStatus(asked.name, asked.run_id, state, asked.requested_by, asked.stop, made, failure)


@dataclass(frozen=True)
class Restorable:
    """A checkpoint or savepoint that a run may begin with; ``reference`` is what the field `restore` takes."""

    reference: str
    savepoint: bool
    run_id: str
    number: int
    interval: str
    taken_at: datetime


def restorables(pipeline: str, savepoints: Savepoints, ledger: Ledger) -> tuple[Restorable, ...]:
    """The newest first: savepoints, and the checkpoints that runs of the latest intervals have left."""
    found = (*_saved(pipeline, savepoints), *_left(pipeline, ledger))
    return tuple(sorted(found, key=lambda one: one.taken_at, reverse=True))


def _saved(pipeline: str, savepoints: Savepoints) -> Iterator[Restorable]:
    for one in savepoints.all():
        if one.pipeline == pipeline:
            yield Restorable(one.name, True, one.run_id, one.number, one.interval, one.created_at)


def _left(pipeline: str, ledger: Ledger) -> Iterator[Restorable]:
    for interval in ledger.partitions.intervals(pipeline, INTERVALS):
        for one in ledger.checkpoints.of_interval(pipeline, interval):
            if one.kept and not one.savepoint:
                reference = f"{one.run_id}#{one.number}"
                yield Restorable(reference, False, one.run_id, one.number, interval, one.triggered_at)
