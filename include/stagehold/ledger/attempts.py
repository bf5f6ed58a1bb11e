"""Attempts: each try of a region, with its epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from stagehold.ledger.database.column_types import DatabaseTime, storable
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, record_of, records, row_of
from stagehold.ledger.database.schema import attempts
from stagehold.ledger.events import note_beginning, note_moves
from stagehold.model.partition_set import Share, overlap
from stagehold.model.records import UNBEGUN, Attempt, AttemptState, FailureClass
from stagehold.model.states import ATTEMPT, AttemptEvent, attempt_after, moves
from stagehold.plan.split.shares import newest_covering, share_of

BEGAN = attempts.c.epoch > UNBEGUN


@dataclass(frozen=True)
class Failure:
    """Why an attempt did not finish; ``kind`` and ``rule`` are None for one that was cancelled. ``labels`` are what
    failure enrichers say of it.
    """

    text: str
    kind: FailureClass | None = None
    rule: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class Attempts:
    """The `attempts` table. Tries that have had no lease are returned by `of_run` alone; all other methods leave them
    out. Every state is compared and set through the state machine of attempts, and recorded in `transitions`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self) -> datetime:
        """The time by which attempts begin and end: the database's, as clocks of hosts differ. A file of SQLite's has
        one host, whose clock tells more than the milliseconds that SQLite knows.
        """
        if self._database.url.get_backend_name() == "sqlite":
            return datetime.now(UTC)
        with self._database.reading() as connection:
            return connection.execute(select(DatabaseTime())).scalar_one()

    def create(self, attempt: Attempt, *events: AttemptEvent) -> None:
        """Record the attempt as CREATED and apply the events to it. Recording it again changes nothing, so a caller may
        repeat a call that ended in an outage.
        """
        row = row_of(replace(attempt, state=AttemptState.CREATED))
        with self._database.writing() as connection:
            if connection.execute(self._database.insert(attempts).values(row).on_conflict_do_nothing()).rowcount:
                note_beginning(connection, attempt.run_id, attempt.attempt_id, AttemptState.CREATED)
                self._move(connection, _get(connection, attempt.attempt_id), events)

    def begin(self, attempt_id: str, epoch: int) -> Attempt | None:
        """Deploy the attempt, which has its lease now; None if it has ended, because it was taken for dead."""
        now = self.now()
        with self._database.writing() as connection:
            facts = {"epoch": epoch, "started_at": now}
            if not self._move(connection, _get(connection, attempt_id), (AttemptEvent.DEPLOY,), **facts):
                return None
            begun = _get(connection, attempt_id)
            assert begun is not None, "nobody deletes attempts"
            self._database.tell(begun)
            return begun

    def apply(self, attempt_id: str, *events: AttemptEvent, failure: Failure | None = None) -> bool:
        """Apply the events to the attempt, one after the other; the failure that ends it is kept. False if they change
        nothing: an end stays, and an attempt that was never made stays unmade.

        :raises IllegalTransition: it is scheduled or deployed when that is not its next step.
        """
        with self._database.writing() as connection:
            attempt = _get(connection, attempt_id)
            facts = _failure_facts(failure, attempt, self._database) if failure and attempt else {}
            return self._move(connection, attempt, events, **facts)

    def _move(
        self, connection: Connection, attempt: Attempt | None, events: Sequence[AttemptEvent], **facts: object
    ) -> bool:
        made = moves(attempt.state, events, _state_after) if attempt else ()
        if attempt and made:
            after = made[-1].after
            end = {"ended_at": DatabaseTime()} if ATTEMPT.is_terminal(after) else {}
            swap = update(attempts).where(
                attempts.c.attempt_id == attempt.attempt_id, attempts.c.state == attempt.state
            )
            connection.execute(swap.values(state=after, **end, **facts))
            note_moves(connection, attempt.run_id, attempt.attempt_id, made)
            ended = _get(connection, attempt.attempt_id)
            if ended and ATTEMPT.is_terminal(ended.state):
                self._database.tell(ended)
        return bool(made)

    def of_run(self, run_id: str) -> tuple[Attempt, ...]:
        """The run's attempts in the order they began."""
        query = (
            select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.started_at, attempts.c.attempt_id)
        )
        return read_all(self._database, Attempt, query)

    def recent(self, pipeline: str, limit: int) -> tuple[Attempt, ...]:
        """The pipeline's attempts that began last, newest first."""
        query = (
            select(attempts)
            .where(attempts.c.pipeline == pipeline, BEGAN)
            .order_by(attempts.c.started_at.desc())
            .limit(limit)
        )
        return read_all(self._database, Attempt, query)

    def ended_since(self, moment: datetime) -> tuple[Attempt, ...]:
        """Attempts of all pipelines that have ended since then, in the order of their ends."""
        query = select(attempts).where(BEGAN, attempts.c.ended_at >= moment)
        return read_all(self._database, Attempt, query.order_by(attempts.c.ended_at, attempts.c.attempt_id))

    def going(self, pipeline: str | None = None) -> tuple[Attempt, ...]:
        """Attempts that have had their lease and have not ended, of one pipeline or all. An attempt whose process died
        is among them until somebody notices.
        """
        ended = [state for state in AttemptState if ATTEMPT.is_terminal(state)]
        query = select(attempts).where(BEGAN, attempts.c.state.not_in(ended))
        of_pipeline = query if pipeline is None else query.where(attempts.c.pipeline == pipeline)
        return read_all(self._database, Attempt, of_pipeline.order_by(attempts.c.started_at, attempts.c.attempt_id))

    def newest(self, pipeline: str, interval: str, region: str, share: Share | None = None) -> tuple[Attempt, ...]:
        """The newest attempt of every partition of ``share``, whatever run and cut it belongs to, newest first."""
        columns = attempts.c
        query = select(attempts).where(
            columns.pipeline == pipeline, columns.interval == interval, columns.region == region, BEGAN
        )
        with self._database.reading() as connection:
            return newest_covering(records(connection, Attempt, query), share)

    def failed(self, pipeline: str, interval: str, rules: Collection[str]) -> tuple[Attempt, ...]:
        """Attempts of the interval, of any region and run, that failed by one of these rules; by epoch."""
        columns = attempts.c
        query = (
            select(attempts)
            .where(columns.pipeline == pipeline, columns.interval == interval, BEGAN)
            .where(columns.state == AttemptState.FAILED, columns.failure_rule.in_(rules))
            .order_by(columns.epoch, columns.attempt_id)
        )
        return read_all(self._database, Attempt, query)

    def epochs(self, attempt: Attempt) -> frozenset[int]:
        """Epochs of all attempts of the same region and interval, of any share."""
        with self._database.reading() as connection:
            return frozenset(connection.scalars(select(attempts.c.epoch).where(_same_region(attempt))))

    def before(self, attempt: Attempt) -> tuple[Attempt, ...]:
        """Earlier attempts of the region that had partitions of this one: its fence keeps them out, too."""
        epoch = attempts.c.epoch
        query = select(attempts).where(_same_region(attempt), BEGAN, epoch < attempt.epoch).order_by(epoch)
        with self._database.reading() as connection:
            found = records(connection, Attempt, query)
        return tuple(known for known in found if overlap(share_of(known), share_of(attempt)))

    def newest_of_regions(self, pipeline: str) -> tuple[Attempt, ...]:
        """The attempt with the highest epoch of every region and interval of a pipeline, by interval."""
        columns = attempts.c
        newest = select(columns.interval, columns.region, func.max(columns.epoch).label("epoch"))
        highest = (
            newest.where(columns.pipeline == pipeline, BEGAN).group_by(columns.interval, columns.region).subquery()
        )
        same = (
            (columns.interval == highest.c.interval)
            & (columns.region == highest.c.region)
            & (columns.epoch == highest.c.epoch)
        )
        query = (
            select(attempts)
            .join(highest, same)
            .where(columns.pipeline == pipeline)
            .order_by(columns.interval, columns.region)
        )
        return read_all(self._database, Attempt, query)


def _same_region(attempt: Attempt) -> ColumnElement[bool]:
    """A condition that only attempts of the same pipeline, interval and region meet."""
    columns = attempts.c
    return and_(
        columns.pipeline == attempt.pipeline, columns.interval == attempt.interval, columns.region == attempt.region
    )


def _get(connection: Connection, attempt_id: str) -> Attempt | None:
    """The attempt, locked: nobody else changes it before the end of the transaction."""
    query = select(attempts).where(attempts.c.attempt_id == attempt_id).with_for_update()
    row = connection.execute(query).mappings().one_or_none()
    return record_of(Attempt, row) if row else None


def _state_after(state: AttemptState, event: AttemptEvent) -> AttemptState:
    return attempt_after(state, event).state


def _failure_facts(failure: Failure, attempt: Attempt, database: Database) -> dict[str, object]:
    labels = {storable(key): storable(database.redact(value)) for key, value in failure.labels.items()}
    return {
        "failure": database.redact(failure.text),
        "failure_class": failure.kind,
        "failure_rule": failure.rule,
        "labels": {**attempt.labels, **labels},
    }
