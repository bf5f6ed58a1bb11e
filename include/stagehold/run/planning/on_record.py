"""The records of one interval, and which of their data is not in the lake now. Spark is not needed for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.errors import UnknownName
from stagehold.lake.available import missing_data, missing_files
from stagehold.lake.published import Absences, absences
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import PartitionRecord
from stagehold.plan.resume.situation import StageData
from stagehold.spec.pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from stagehold.run.planning.snapshots import BeginsWith, ById


def on_record(
    pipeline: Pipeline,
    by_id: ById,
    ledger: Ledger,
    begins_with: BeginsWith | None = None,
    tied: frozenset[str] = frozenset(),
) -> Mapping[str, StageData]:
    """The newest records by stage name, whatever their state, and which of their data cannot be read now, for which the
    lake is asked each time.

    :param by_id: the newest records of the interval.
    :param tied: ids of stages that take nothing over.
    """
    waiting: Mapping[str, frozenset[int]] = {}
    if begins_with:
        by_id, waiting = begins_with.in_place_of(by_id, ledger, tied)
    return {
        stage.name: _stage_data(stage, by_id[stage.id], waiting.get(stage.id, frozenset()))
        for stage in pipeline.stages
        if stage.id in by_id
    }


def _stage_data(stage: Stage, records: tuple[PartitionRecord, ...], restored: frozenset[int]) -> StageData:
    """:param restored: partitions whose record comes from a checkpoint that the run begins with, and which are not put
    in place yet.
    """
    committed, published = _committed(records), None
    if stage.output.table is not None:
        published = absences(
            [record for record in committed if record.partition < stage.partitions and record.partition not in restored]
        )
    return StageData(
        records=records,
        gone=PartitionSet(_gone(committed, published, restored) | _refused_and_gone(records)),
        removed=published.removed if published else {},
        restored=PartitionSet(restored),
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


def began(run_id: str, ledger: Ledger) -> datetime:
    """When a run began; now, if it has not yet."""
    try:
        return ledger.runs.get(run_id).started_at
    except UnknownName:
        return datetime.now(UTC)
