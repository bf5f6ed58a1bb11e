"""Checkpoints: which were begun and how they ended, what attempts did for them, and requests for savepoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, RowMapping, and_, insert, select, update

from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, record_of, row_of
from stagehold.ledger.database.schema import acknowledgements, checkpoints, savepoint_requests
from stagehold.ledger.leases import check_epoch
from stagehold.model.checkpoint_records import (
    Acknowledgement,
    Answer,
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    SavepointRequest,
)
from stagehold.model.records import Attempt, Lease


class Checkpoints:
    """The `checkpoints` table. A writer has the run's coordinator lease: if another process has taken the lease over,
    writing raises Fenced and changes nothing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, checkpoint: CheckpointRecord, lease: Lease) -> CheckpointRecord:
        """Use up its number; the checkpoint is in progress from now on."""
        begun = replace(checkpoint, state=CheckpointState.IN_PROGRESS, triggered_at=datetime.now(UTC))
        with self._database.writing() as connection:
            check_epoch(connection, lease)
            connection.execute(insert(checkpoints).values(row_of(begun)))
            self._database.tell(begun)
        return begun

    def complete(
        self,
        checkpoint: CheckpointRecord,
        lease: Lease,
        *,
        written: int,
        referenced: int,
        covers: int,
        untold: bool = False,
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
            untold=untold,
        )

    def fail(
        self,
        checkpoint: CheckpointRecord,
        lease: Lease,
        reason: CheckpointFailure,
        failure: str,
        *,
        fails_run: bool = False,
        untold: bool = False,
    ) -> CheckpointRecord:
        """Record that the checkpoint failed. There never will be another with its number."""
        return self._set(
            checkpoint,
            lease,
            state=CheckpointState.FAILED,
            ended_at=DatabaseTime(),
            reason=reason,
            failure=self._database.redact(failure),
            fails_run=fails_run,
            untold=untold,
        )

    def acknowledge(self, checkpoint: CheckpointRecord, lease: Lease) -> None:
        """Record that everybody who has a part in the checkpoint was told how it ended."""
        self._set(checkpoint, lease, untold=False)

    def discard(self, checkpoint: CheckpointRecord, lease: Lease) -> None:
        """Record that the checkpoint is about to be deleted from the lake: no run may restore it any more."""
        self._set(checkpoint, lease, discarded_at=DatabaseTime())

    def get(self, run_id: str, number: int) -> CheckpointRecord:
        query = select(checkpoints).where(checkpoints.c.run_id == run_id, checkpoints.c.number == number)
        with self._database.reading() as connection:
            return record_of(CheckpointRecord, connection.execute(query).mappings().one())

    def of_run(self, run_id: str) -> tuple[CheckpointRecord, ...]:
        """All checkpoints of the run by number, also those that failed or were discarded."""
        query = select(checkpoints).where(checkpoints.c.run_id == run_id).order_by(checkpoints.c.number)
        return read_all(self._database, CheckpointRecord, query)

    def of_interval(self, pipeline: str, interval: str) -> tuple[CheckpointRecord, ...]:
        """Checkpoints of all runs of the interval."""
        wanted = (checkpoints.c.pipeline == pipeline, checkpoints.c.interval == interval)
        query = select(checkpoints).where(*wanted).order_by(checkpoints.c.run_id, checkpoints.c.number)
        return read_all(self._database, CheckpointRecord, query)

    def covered(self, checkpoint: CheckpointRecord) -> int | None:
        """The highest id in `partitions` that it contains; None if this ledger does not know."""
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


@dataclass(frozen=True)
class Notice:
    """A checkpoint for an attempt of its run. ``asked``: the attempt has a part in it; ``answer``: its answer."""

    checkpoint: CheckpointRecord
    asked: bool
    answer: Answer | None


class Acknowledgements:
    """The `acknowledgements` table. Nothing is decided from it once a checkpoint has ended, so no lake keeps it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, checkpoint: CheckpointRecord, attempts: Sequence[Attempt], lease: Lease) -> None:
        """Ask all attempts or none; Fenced if another process has taken over the run's coordinator ``lease``."""
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
        """Record the answer of an attempt. The first answer counts; an answer after the end of the checkpoint has no
        use, and does no harm.
        """
        self._answer(_of(checkpoint), acknowledgements.c.attempt_id == attempt_id, answer=answer, reason=reason)

    def settle(self, checkpoint: CheckpointRecord) -> None:
        """All tasks have done their part: those without an answer have finished instead."""
        self._answer(_of(checkpoint), answer=Answer.ACKNOWLEDGED)

    def of(self, checkpoint: CheckpointRecord) -> tuple[Acknowledgement, ...]:
        """The acknowledgements of the checkpoint, by region and share."""
        return self._fetch(_of(checkpoint))

    def of_run(self, run_id: str) -> tuple[Acknowledgement, ...]:
        """The acknowledgements of all checkpoints of the run, by number."""
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


class SavepointRequests:
    """The `savepoint_requests` table. The result of a request is in the lake, so requests are not kept in the lake."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, request: SavepointRequest) -> SavepointRequest:
        """Keep the request and return it. An earlier request of that name that is not settled counts as the same; a
        settled one is replaced.
        """
        new = self._database.insert(savepoint_requests).values(row_of(request))
        anew = {name: new.excluded[name] for name in row_of(request) if name != "name"}
        settled = savepoint_requests.c.settled_at.is_not(None)
        with self._database.writing() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["name"], set_=anew, where=settled))
            query = select(savepoint_requests).where(savepoint_requests.c.name == request.name)
            return record_of(SavepointRequest, connection.execute(query).mappings().one())

    def get(self, name: str) -> SavepointRequest | None:
        query = select(savepoint_requests).where(savepoint_requests.c.name == name)
        return read_one(self._database, SavepointRequest, query)

    def open_of(self, run_id: str) -> tuple[SavepointRequest, ...]:
        """Requests of a run that were not served yet, in the order in which they came."""
        columns = savepoint_requests.c
        query = select(savepoint_requests).where(columns.run_id == run_id, columns.settled_at.is_(None))
        return read_all(self._database, SavepointRequest, query.order_by(columns.requested_at, columns.name))

    def settle(self, name: str, failure: str | None = None) -> None:
        """Record that the request was served or, by ``failure``, why there is no savepoint. The first answer counts."""
        open_one = (savepoint_requests.c.name == name, savepoint_requests.c.settled_at.is_(None))
        told = failure and self._database.redact(failure)
        with self._database.writing() as connection:
            connection.execute(
                update(savepoint_requests).where(*open_one).values(settled_at=DatabaseTime(), failure=told)
            )
