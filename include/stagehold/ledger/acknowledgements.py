"""Acknowledgements: which attempts were asked to do their part in a checkpoint, and what they answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, RowMapping, and_, insert, select, update

from stagehold.ledger.database.columns import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of
from stagehold.ledger.database.schema import acknowledgements, checkpoints
from stagehold.ledger.leases import check_epoch
from stagehold.model.checkpoint_records import Acknowledgement, Answer, CheckpointFailure, CheckpointRecord
from stagehold.model.records import Attempt, Lease


@dataclass(frozen=True)
class Notice:
    """A checkpoint as an attempt of its run sees it. ``asked``: it has a part in it; ``answer``: what it said."""

    checkpoint: CheckpointRecord
    asked: bool
    answer: Answer | None


class Acknowledgements:
    """The `acknowledgements` table. Nothing is decided from it once a checkpoint has ended, so no lake keeps it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, checkpoint: CheckpointRecord, attempts: Sequence[Attempt], lease: Lease) -> None:
        """Ask all or none; Fenced when the run's coordinator ``lease`` was taken over."""
        rows = [
            {
                "run_id": checkpoint.run_id,
                "number": checkpoint.number,
                "attempt_id": attempt.attempt_id,
                "region": attempt.region,
                "share": attempt.share,
                "asked_at": DatabaseTime(),
            }
            for attempt in attempts
        ]
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            if rows:
                connection.execute(insert(acknowledgements).values(rows))

    def answer(
        self, checkpoint: CheckpointRecord, attempt_id: str, answer: Answer, reason: CheckpointFailure | None = None
    ) -> None:
        """The first answer counts. One that comes after the checkpoint has ended is of no use, and does no harm."""
        self._answer(_of(checkpoint), acknowledgements.c.attempt_id == attempt_id, answer=answer, reason=reason)

    def settle(self, checkpoint: CheckpointRecord) -> None:
        """All tasks have done their part: whoever has not answered has finished instead."""
        self._answer(_of(checkpoint), answer=Answer.ACKNOWLEDGED)

    def of(self, checkpoint: CheckpointRecord) -> tuple[Acknowledgement, ...]:
        """By region and share."""
        return self._fetch(_of(checkpoint))

    def of_run(self, run_id: str) -> tuple[Acknowledgement, ...]:
        """Of all checkpoints of the run, by number."""
        return self._fetch(acknowledgements.c.run_id == run_id)

    def notices(self, attempt: Attempt, after: int) -> tuple[Notice, ...]:
        """The checkpoints of the attempt's run with higher numbers than ``after``, by number."""
        own = and_(
            acknowledgements.c.run_id == checkpoints.c.run_id,
            acknowledgements.c.number == checkpoints.c.number,
            acknowledgements.c.attempt_id == attempt.attempt_id,
        )
        query = (
            select(checkpoints, acknowledgements.c.attempt_id.label("asked"), acknowledgements.c.answer)
            .outerjoin(acknowledgements, own)
            .where(checkpoints.c.run_id == attempt.run_id, checkpoints.c.number > after)
            .order_by(checkpoints.c.number)
        )
        with self._database.reading() as connection:
            return tuple(_notice(row) for row in connection.execute(query).mappings())

    def _answer(self, *which: ColumnElement[bool], **facts: object) -> None:
        open_ones = update(acknowledgements).where(*which, acknowledgements.c.answered_at.is_(None))
        with self._database.writing() as connection:
            connection.execute(open_ones.values(answered_at=DatabaseTime(), **facts))

    def _fetch(self, which: ColumnElement[bool]) -> tuple[Acknowledgement, ...]:
        columns = acknowledgements.c
        query = select(acknowledgements).where(which).order_by(columns.number, columns.region, columns.share)
        return read_all(self._database, Acknowledgement, query)


def _of(checkpoint: CheckpointRecord) -> ColumnElement[bool]:
    return and_(acknowledgements.c.run_id == checkpoint.run_id, acknowledgements.c.number == checkpoint.number)


def _notice(row: RowMapping) -> Notice:
    return Notice(record_of(CheckpointRecord, row), row["asked"] is not None, row["answer"])
