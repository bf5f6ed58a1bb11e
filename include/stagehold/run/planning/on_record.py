"""What is on record of one interval, and what of that the lake does not have now. Spark is not needed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagehold.lake.available import missing_data, missing_files
from stagehold.lake.published import Absences, absences
from stagehold.ledger.ledger import Ledger
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import PartitionRecord, PartitionState
from stagehold.spec.pipeline import Pipeline


@dataclass(frozen=True)
class OnRecord:
    """The newest records by stage name, whatever their state.

    ``gone`` are partitions whose data cannot be read now, ``removed`` those that somebody else took out of a published
    table: both are asked of the lake each time.
    """

    records: Mapping[str, tuple[PartitionRecord, ...]]
    gone: Mapping[str, frozenset[int]]
    removed: Mapping[str, Mapping[int, ForeignChange]]


def on_record(pipeline: Pipeline, interval: str, ledger: Ledger) -> OnRecord:
    by_id = ledger.partitions.newest_of(pipeline.name, interval)
    records = {stage.name: by_id[stage.id] for stage in pipeline.stages if stage.id in by_id}
    published = {
        stage.name: absences([one for one in _committed(records[stage.name]) if one.partition < stage.partitions])
        for stage in pipeline.stages
        if stage.output.table is not None and stage.name in records
    }
    return OnRecord(
        records=records,
        gone={name: _gone(_committed(some), published.get(name)) for name, some in records.items()},
        removed={name: found.removed for name, found in published.items()},
    )


def _gone(records: tuple[PartitionRecord, ...], published: Absences | None) -> frozenset[int]:
    """Of a published table it counts what its snapshot holds; of a stage's own, whether its version is there."""
    return missing_data(records) if published is None else missing_files(records) | published.lost


def _committed(records: tuple[PartitionRecord, ...]) -> tuple[PartitionRecord, ...]:
    """What was released is not asked for: it may be deleted at any moment."""
    kept = (record for record in records if record.state is not PartitionState.RELEASED)
    return tuple(record for record in kept if record.version is not None)
