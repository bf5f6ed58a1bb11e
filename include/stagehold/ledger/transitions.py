"""Transitions: how the states of runs and attempts came about."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, insert, select

from stagehold.ledger.database.columns import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import transitions
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import AttemptEvent, Happening, Move, RunEvent, State, Transition


class Transitions:
    """The `transitions` table. Rows are written by whoever writes the state, in one transaction with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_run(self, run_id: str) -> tuple[Transition, ...]:
        """The history of the run and its attempts, in the order in which it happened."""
        query = select(transitions).where(transitions.c.run_id == run_id).order_by(transitions.c.id)
        with self._database.reading() as connection:
            return tuple(_transition(row) for row in connection.execute(query).mappings())


def note_beginning(connection: Connection, run_id: str, attempt_id: str | None, state: StrEnum) -> None:
    """Note in the caller's transaction that a run's or an attempt's life begins in ``state``."""
    _insert(connection, [{"run_id": run_id, "attempt_id": attempt_id, "before": None, "after": state, "event": None}])


def note_moves(
    connection: Connection, run_id: str, attempt_id: str | None, made: Sequence[Move[State, Happening]]
) -> None:
    """Note the changes of a run's or an attempt's state in the transaction of the caller, who writes the state."""
    _insert(connection, [{"run_id": run_id, "attempt_id": attempt_id, **vars(move)} for move in made])


def _insert(connection: Connection, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        connection.execute(insert(transitions).values([{**row, "recorded_at": DatabaseTime()} for row in rows]))


def _transition(row: RowMapping) -> Transition:
    """The words of a run and of an attempt are two languages; the row's attempt tells which one it speaks."""
    state, event = (RunState, RunEvent) if row["attempt_id"] is None else (AttemptState, AttemptEvent)
    return Transition(
        run_id=row["run_id"],
        attempt_id=row["attempt_id"],
        before=row["before"] and state(row["before"]),
        after=state(row["after"]),
        event=row["event"] and event(row["event"]),
        recorded_at=row["recorded_at"],
    )
