"""Events: a run's history for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import insert, select

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import read_all, read_one, row_of
from stagehold.ledger.database.schema import events
from stagehold.model.records import TRACE, Event


class Events:
    """The `events` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, event: Event) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(events).values(row_of(replace(event, text=self._database.redact(event.text)))))

    def of_run(self, run_id: str, after: int = 0) -> tuple[Event, ...]:
        """The run's events in order, without the traces of its failures.

        On PostgreSQL two events written at the same moment may show up in turn the wrong way round, so a follower may
        then be given one twice and miss the other.

        :param after: how many of them the caller has already, for those who follow a run.
        """
        query = (
            select(events).where(events.c.run_id == run_id, events.c.kind != TRACE).order_by(events.c.id).offset(after)
        )
        return read_all(self._database, Event, query)

    def newest(self, run_id: str, kind: str) -> Event | None:
        """The last event of a kind in a run."""
        query = select(events).where(events.c.run_id == run_id, events.c.kind == kind).order_by(events.c.id.desc())
        return read_one(self._database, Event, query.limit(1))

    def traces(self, run_id: str) -> Mapping[str, str]:
        """The whole story of each failure of the run that has one, by attempt id."""
        query = (
            select(events.c.subject, events.c.text)
            .where(events.c.run_id == run_id, events.c.kind == TRACE)
            .order_by(events.c.id)
        )
        with self._database.reading() as connection:
            return {row.subject: row.text for row in connection.execute(query)}
