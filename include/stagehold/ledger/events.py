"""Events and transitions: a run's history for people, and how runs and attempts came to their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, insert, select

from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, row_of
from stagehold.ledger.database.schema import events, transitions
from stagehold.model.records import TRACE, AttemptState, Event, RunState
from stagehold.model.states import AttemptEvent, Happening, Move, RunEvent, State, Transition


class Events:
    """The `events` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, event: Event) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(events).values(row_of(replace(event, text=self._database.redact(event.text)))))

    def of_run(self, run_id: str, after: int = 0) -> tuple[Event, ...]:
        """The run's events in order, without the traces of its failures.

        On PostgreSQL two events written at the same moment may become visible in the wrong order, so a follower may get
        one twice and miss the other.

        :param after: how many of them a follower has already.
        """
        query = (
            select(events).where(events.c.run_id == run_id, events.c.kind != TRACE).order_by(events.c.id).offset(after)
        )
        return read_all(self._database, Event, query)

    def newest(self, run_id: str, kind: str) -> Event | None:
        """The last event of a kind in a run."""
        query = select(events).where(events.c.run_id == run_id, events.c.kind == kind).order_by(events.c.id.desc())
        return read_one(self._database, Event, query.limit(1))

    def of_kind(self, run_id: str, kind: str) -> tuple[Event, ...]:
        """The run's events of that kind, in order."""
        query = select(events).where(events.c.run_id == run_id, events.c.kind == kind).order_by(events.c.id)
        return read_all(self._database, Event, query)

    def traces(self, run_id: str) -> Mapping[str, str]:
        """The trace of each failure of the run that has one, by attempt id."""
        query = (
            select(events.c.subject, events.c.text)
            .where(events.c.run_id == run_id, events.c.kind == TRACE)
            .order_by(events.c.id)
        )
        with self._database.reading() as connection:
            return {row.subject: row.text for row in connection.execute(query)}


class Transitions:
    """The `transitions` table. A row is written together with the state, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_run(self, run_id: str) -> tuple[Transition, ...]:
        """The history of the run and its attempts, in the order in which it happened."""
        query = select(transitions).where(transitions.c.run_id == run_id).order_by(transitions.c.id)
        with self._database.reading() as connection:
            return tuple(_transition(row) for row in connection.execute(query).mappings())


def note_beginning(connection: Connection, run_id: str, attempt_id: str | None, state: StrEnum) -> None:
    """Record in the caller's transaction that a run's or an attempt's life begins in ``state``."""
    _insert(connection, [{"run_id": run_id, "attempt_id": attempt_id, "before": None, "after": state, "event": None}])


def note_moves(
    connection: Connection, run_id: str, attempt_id: str | None, made: Sequence[Move[State, Happening]]
) -> None:
    """Record the changes of a run's or an attempt's state in the transaction of the caller, who writes the state."""
    _insert(connection, [{"run_id": run_id, "attempt_id": attempt_id, **vars(move)} for move in made])


def _insert(connection: Connection, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        connection.execute(insert(transitions).values([{**row, "recorded_at": DatabaseTime()} for row in rows]))


def _transition(row: RowMapping) -> Transition:
    """The transition. Runs and attempts have different words for states; the row's attempt tells which words these
    are.
    """
    state, event = (RunState, RunEvent) if row["attempt_id"] is None else (AttemptState, AttemptEvent)
    return Transition(
        run_id=row["run_id"],
        attempt_id=row["attempt_id"],
        before=row["before"] and state(row["before"]),
        after=state(row["after"]),
        event=row["event"] and event(row["event"]),
        recorded_at=row["recorded_at"],
    )
