"""The records of one interval, and which of their data is not in the lake now. Spark is not needed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagehold.lake.available import missing_data, missing_files
from stagehold.lake.published import Absences, absences
from stagehold.ledger.ledger import Ledger
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import PartitionRecord
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from stagehold.run.planning.snapshots import BeginsWith, ById


@dataclass(frozen=True)
class OnRecord:
    """The newest records by stage name, whatever their state.

    ``restored`` are partitions whose record comes from a checkpoint that the run begins with, and which are not put in
    place yet. ``gone`` are partitions whose data cannot be read now, ``removed`` those that somebody else took out of a
    published table: for both the lake is asked each time.
    """

    records: Mapping[str, tuple[PartitionRecord, ...]]
    gone: Mapping[str, frozenset[int]]
    removed: Mapping[str, Mapping[int, ForeignChange]]
    restored: Mapping[str, frozenset[int]] = field(default_factory=dict)


def on_record(
    pipeline: Pipeline,
    by_id: ById,
    ledger: Ledger,
    begins_with: BeginsWith | None = None,
    tied: frozenset[str] = frozenset(),
) -> OnRecord:
    """The records of the interval.

    :param by_id: the newest records of the interval.
    :param tied: ids of stages that take nothing over.
    """
    waiting: Mapping[str, frozenset[int]] = {}
    if begins_with:
        by_id, waiting = begins_with.in_place_of(by_id, ledger, tied)
    restored = {stage.name: waiting[stage.id] for stage in pipeline.stages if waiting.get(stage.id)}
    records = {stage.name: by_id[stage.id] for stage in pipeline.stages if stage.id in by_id}
    published = {
        stage.name: absences(
            [
                record
                for record in _committed(records[stage.name])
                if record.partition < stage.partitions and record.partition not in restored.get(stage.name, ())
            ]
        )
        for stage in pipeline.stages
        if stage.output.table is not None and stage.name in records
    }
    return OnRecord(
        records=records,
        gone={
            name: _gone(_committed(stage_records), published.get(name), restored.get(name, frozenset()))
            | _refused_and_gone(stage_records)
            for name, stage_records in records.items()
        },
        removed={name: found.removed for name, found in published.items()},
        restored=restored,
    )


def _gone(records: tuple[PartitionRecord, ...], published: Absences | None, restored: frozenset[int]) -> frozenset[int]:
    """Partitions whose data is gone. In a published table the present snapshot has to have it; in a stage's own table
    the version has to be there; for data that is still to be put there, its files.
    """
    waiting = missing_files([record for record in records if record.partition in restored])
    here = tuple(record for record in records if record.partition not in restored)
    return waiting | (missing_data(here) if published is None else missing_files(here) | published.lost)


def _refused_and_gone(records: tuple[PartitionRecord, ...]) -> frozenset[int]:
    return missing_files([record for record in records if record.state.kept_back and record.version is None])


def _committed(records: tuple[PartitionRecord, ...]) -> tuple[PartitionRecord, ...]:
    """The records that are looked for. Released ones are left out: their data may be deleted at any moment."""
    kept = (record for record in records if record.state.keeps_files)
    return tuple(record for record in kept if record.version is not None)
