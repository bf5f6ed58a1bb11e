"""Checkpoints: which were taken of a run, and what became of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, insert, select, update

from stagehold.ledger.database.columns import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of, row_of
from stagehold.ledger.database.schema import checkpoints
from stagehold.ledger.leases import check_epoch
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointRecord, CheckpointState
from stagehold.model.records import Lease


class Checkpoints:
    """The `checkpoints` table. Who writes has the run's coordinator lease: a write under one that somebody has taken
    over raises Fenced and changes nothing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, checkpoint: CheckpointRecord, lease: Lease) -> CheckpointRecord:
        """Spend its number; the checkpoint is in progress from now on."""
        begun = replace(checkpoint, state=CheckpointState.IN_PROGRESS, triggered_at=datetime.now(UTC))
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            connection.execute(insert(checkpoints).values(row_of(begun)))
            self._database.tell(begun)
        return begun

    def complete(
        self, checkpoint: CheckpointRecord, lease: Lease, *, written: int, referenced: int, covers: int
    ) -> CheckpointRecord:
        """Its manifest is in the lake, with all rows of `partitions` up to ``covers``."""
        return self._set(
            checkpoint,
            lease,
            state=CheckpointState.COMPLETED,
            ended_at=DatabaseTime(),
            bytes_written=written,
            bytes_referenced=referenced,
            covers=covers,
        )

    def fail(
        self,
        checkpoint: CheckpointRecord,
        lease: Lease,
        reason: CheckpointFailure,
        failure: str,
        *,
        fails_run: bool = False,
    ) -> CheckpointRecord:
        """There is no such checkpoint, and there never will be one with its number."""
        return self._set(
            checkpoint,
            lease,
            state=CheckpointState.FAILED,
            ended_at=DatabaseTime(),
            reason=reason,
            failure=self._database.redact(failure),
            fails_run=fails_run,
        )

    def discard(self, checkpoint: CheckpointRecord, lease: Lease) -> None:
        """It is about to be deleted from the lake; nobody may restore it any more."""
        self._set(checkpoint, lease, discarded_at=DatabaseTime())

    def get(self, run_id: str, number: int) -> CheckpointRecord:
        query = select(checkpoints).where(checkpoints.c.run_id == run_id, checkpoints.c.number == number)
        with self._database.reading() as connection:
            return record_of(CheckpointRecord, connection.execute(query).mappings().one())

    def of_run(self, run_id: str) -> tuple[CheckpointRecord, ...]:
        """All of them by number, also those that failed or were discarded."""
        query = select(checkpoints).where(checkpoints.c.run_id == run_id).order_by(checkpoints.c.number)
        return read_all(self._database, CheckpointRecord, query)

    def of_interval(self, pipeline: str, interval: str) -> tuple[CheckpointRecord, ...]:
        """Those of all its runs."""
        wanted = (checkpoints.c.pipeline == pipeline, checkpoints.c.interval == interval)
        query = select(checkpoints).where(*wanted).order_by(checkpoints.c.run_id, checkpoints.c.number)
        return read_all(self._database, CheckpointRecord, query)

    def covered(self, checkpoint: CheckpointRecord) -> int | None:
        """The highest id in `partitions` that it has; None when this ledger does not know."""
        with self._database.reading() as connection:
            found: int | None = connection.scalar(select(checkpoints.c.covers).where(*_key(checkpoint)))
            return found

    def _set(self, checkpoint: CheckpointRecord, lease: Lease, **facts: object) -> CheckpointRecord:
        setting = update(checkpoints).where(*_key(checkpoint)).values(**facts).returning(checkpoints)
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            changed = record_of(CheckpointRecord, connection.execute(setting).mappings().one())
            self._database.tell(changed)
            return changed


def _key(checkpoint: CheckpointRecord) -> tuple[ColumnElement[bool], ...]:
    return checkpoints.c.run_id == checkpoint.run_id, checkpoints.c.number == checkpoint.number
