"""The checkpoints of all runs of a pipeline, as a page shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, case, func, select, tuple_

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, record_of
from stagehold.ledger.database.schema import acknowledgements, checkpoints, restores, runs
from stagehold.model.checkpoint_records import Answer, CheckpointRecord, CheckpointState
from stagehold.model.records import Restore

CheckpointKey = tuple[str, int]  # run and number


@dataclass(frozen=True)
class AcknowledgedParts:
    """How many attempts were asked to do their part in a checkpoint, and how many did."""

    acknowledged: int
    asked: int


class CheckpointHistory:
    """Reads `checkpoints`, `acknowledgements` and `restores` by pipeline."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self, pipeline: str) -> Mapping[CheckpointState, int]:
        """As Flink counts them: one that was replaced was completed."""
        query = select(checkpoints.c.state, func.count()).where(checkpoints.c.pipeline == pipeline)
        with self._database.reading() as connection:
            return {state: count for state, count in connection.execute(query.group_by(checkpoints.c.state))}

    def page(self, pipeline: str, limit: int, offset: int) -> tuple[CheckpointRecord, ...]:
        """Of all runs, those that were triggered last first."""
        return read_all(self._database, CheckpointRecord, _newest_first(pipeline).limit(limit).offset(offset))

    def latest(
        self, pipeline: str, state: CheckpointState, *, savepoint: bool | None = None
    ) -> CheckpointRecord | None:
        """The newest that came so far; with ``savepoint`` one of the user's, or one of ours."""
        query = _newest_first(pipeline).where(checkpoints.c.state == state)
        if savepoint is not None:
            query = query.where(_is_savepoint() if savepoint else ~_is_savepoint())
        return read_one(self._database, CheckpointRecord, query.limit(1))

    def restored(self, pipeline: str) -> tuple[int, Restore | None]:
        """How often a run of the pipeline began with a checkpoint or savepoint, and the newest of these."""
        known = (restores.c.snapshot.is_not(None), runs.c.pipeline == pipeline)
        joined = restores.join(runs, runs.c.run_id == restores.c.run_id)
        newest = select(restores).select_from(joined).where(*known).order_by(restores.c.requested_at.desc()).limit(1)
        with self._database.reading() as connection:
            count = connection.scalar(select(func.count()).select_from(joined).where(*known)) or 0
            row = connection.execute(newest).mappings().one_or_none()
        return count, record_of(Restore, row) if row else None

    def parts(self, of: Collection[CheckpointKey]) -> Mapping[CheckpointKey, AcknowledgedParts]:
        """Nothing of a checkpoint in which nobody had a part."""
        columns = acknowledgements.c
        done = func.sum(case((columns.answer == Answer.ACKNOWLEDGED, 1), else_=0))
        query = select(columns.run_id, columns.number, done, func.count())
        query = query.where(tuple_(columns.run_id, columns.number).in_(of)).group_by(columns.run_id, columns.number)
        with self._database.reading() as connection:
            rows = connection.execute(query)
            return {(run, number): AcknowledgedParts(int(some), all_) for run, number, some, all_ in rows}


def _is_savepoint() -> ColumnElement[bool]:
    return checkpoints.c.savepoint.is_not(None)


def _newest_first(pipeline: str) -> Select[tuple[object, ...]]:
    columns = checkpoints.c
    order = (columns.triggered_at.desc(), columns.run_id, columns.number.desc())
    return select(checkpoints).where(columns.pipeline == pipeline).order_by(*order)
