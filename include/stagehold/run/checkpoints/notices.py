"""Tells whoever has a part in a run's checkpoints how they ended: installed listeners, and stages with an `on_complete`
function.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import NoticeFailed
from stagehold.extensions.checkpoint_listening import listeners_of, tell_checkpoint
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointRecord, CheckpointState
from stagehold.model.context import StageCheckpoint
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import counted_in_all
from stagehold.run.equipment.workplace import Progress
from stagehold.run.faults import CheckpointPoint
from stagehold.spec.pipeline import Stage
from stagehold.viewer.database import database_over
from stagehold.viewer.views import DATA, consumable, data_view

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped]

    from stagehold.run.checkpoints.run_checkpoints import RunCheckpoints


class Notices:
    """The notices of one run, for the holder of its coordinator lease. What an earlier holder told and could not put on
    record is told once more.
    """

    def __init__(self, checkpoints: RunCheckpoints) -> None:
        self._checkpoints, self._request = checkpoints, checkpoints.request
        self._listeners = listeners_of(checkpoints.run)

    def tell(self) -> None:
        """Tell of all that ended and is untold, in the order of the numbers.

        :raises NoticeFailed: the function of a stage raised; nobody is told of later checkpoints before it knows.
        :raises LeaseLost: or Fenced, another process has the lease, and goes on.
        """
        for record in self._checkpoints.untold:
            self._checkpoints.heartbeat.check()
            if record.kept:
                self._tell_stages(record)
            failed = record.state is CheckpointState.FAILED
            reason = str(record.reason or CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE) if failed else None
            tell_checkpoint(self._listeners, record.number, reason)
            self._checkpoints.reach(CheckpointPoint.TOLD, record.number)
            self._checkpoints.acknowledge(record)

    def _tell_stages(self, record: CheckpointRecord) -> None:
        from stagehold.spark.session.project_modules import load_function

        opened = cache(partial(self._checkpoints.opened, record))
        for stage in self._request.pipeline.stages:
            if stage.on_complete is None:
                continue
            try:
                part = self._part_of(stage, opened())
                load_function(stage.on_complete, Path(self._checkpoints.workplace.settings.project))(part)
            except Exception as error:
                raise NoticeFailed(record.number, record.run_id, stage.name, stage.on_complete, error) from error

    def _part_of(self, stage: Stage, opened: OpenedCheckpoint) -> StageCheckpoint:
        run, pipeline = self._checkpoints.run, self._request.pipeline
        held = opened.stage(stage.id)
        records = tuple(consumable(opened, held))
        return StageCheckpoint(
            pipeline=run.pipeline,
            stage=stage.name,
            interval=run.interval,
            run_id=run.run_id,
            number=opened.manifest.number,
            partitions=tuple(record.partition for record in records),
            parallelism=held.manifest.parallelism,
            read=lambda: rows_of(stage.name, records, self._checkpoints.workplace.progress),
            counters=dict(counted_in_all(records)),
            params={**pipeline.params, **self._request.params, **stage.params},
        )


def rows_of(stage: str, records: tuple[PartitionRecord, ...], tell: Progress) -> Table:
    """The rows of these partitions. Without files there is nothing that says which columns they have."""
    import pyarrow as pa

    view = data_view(DATA, stage, records)
    if not view.files:
        return pa.table({})
    with database_over([view], tell) as connection:
        return connection.sql(f"SELECT * FROM {view}").to_arrow_table()
