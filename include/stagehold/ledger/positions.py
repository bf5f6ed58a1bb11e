"""Positions: what each interval has taken of the pipeline's sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, func, insert, select

from stagehold.ledger.database.column_types import DatabaseTime
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import positions, transitions
from stagehold.model.records import Cell, RunState, TakenPosition
from stagehold.model.source_position import Position

Choose = Callable[[Mapping[str, Position]], Position]  # given what was taken, by interval


class Positions:
    """The `positions` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def taken(self, pipeline: str, stage: str) -> Mapping[str, Position]:
        """What each interval took last for the stage with this id."""
        with self._database.reading() as connection:
            return _taken(connection, *_of_stage(pipeline, stage))

    def taken_by(self, cell: Cell) -> Position | None:
        """What the cell's interval took last."""
        with self._database.reading() as connection:
            return _taken(connection, *_of_cell(cell)).get(cell.interval)

    def take(self, cell: Cell, run_id: str, choose: Choose) -> Position:
        """What the cell's interval took last; if it has taken nothing, what ``choose`` picks from what all others took.

        No other interval takes anything between that and the record, so ``choose`` must be quick and wait for nothing.
        """
        with self._taking() as connection:
            known = _taken(connection, *_of_stage(cell.pipeline, cell.stage))
            return known.get(cell.interval) or self._record(connection, cell, run_id, choose(known))

    def take_back(self, cell: Cell, run_id: str, position: Position) -> None:
        """Record what the cell's interval took according to the commits of ``run_id``, unless it is known."""
        self.take(cell, run_id, lambda _: position)

    def take_for_run(self, cell: Cell, run_id: str, position: Position) -> Position:
        """What the run reads of the source from now on: what it has seen of it, or else ``position``."""
        with self._taking() as connection:
            return _seen_by(connection, cell, run_id) or self._record(connection, cell, run_id, position)

    def seen_by(self, cell: Cell, run_id: str) -> Position | None:
        """What the cell's interval took last, if the run has taken something of it; another run of the interval may
        have looked later. A run that had finished and goes on again has seen nothing yet.
        """
        with self._database.reading() as connection:
            return _seen_by(connection, cell, run_id)

    def exchange(self, cell: Cell, run_id: str, before: Position, after: Position) -> Position:
        """What the cell's interval has taken from now on: ``after``, if it was ``before`` until now; else what another
        process recorded meanwhile.
        """
        with self._taking() as connection:
            known = _taken(connection, *_of_cell(cell))[cell.interval]
            return self._record(connection, cell, run_id, after) if known == before else known

    def take_again(self, cell: Cell, run_id: str, choose: Choose) -> Position:
        """What ``choose`` picks from what all other intervals took, in place of what the cell's interval took
        before.
        """
        with self._taking() as connection:
            known = _taken(connection, *_of_stage(cell.pipeline, cell.stage))
            before = known.get(cell.interval)
            position = choose({interval: taken for interval, taken in known.items() if interval != cell.interval})
            return position if position == before else self._record(connection, cell, run_id, position)

    @contextmanager
    def _taking(self) -> Iterator[Connection]:
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":  # SQLite's write lock is the same for the whole file
                connection.exec_driver_sql(f"LOCK TABLE {positions.name} IN SHARE ROW EXCLUSIVE MODE")
            yield connection

    def _record(self, connection: Connection, cell: Cell, run_id: str, position: Position) -> Position:
        row = {**vars(cell), "run_id": run_id, "position": position, "recorded_at": DatabaseTime()}
        taking = insert(positions).values(row).returning(positions.c.recorded_at)
        recorded_at = connection.execute(taking).scalar_one()
        self._database.tell(TakenPosition(cell, run_id, position, recorded_at))
        return position


def _seen_by(connection: Connection, cell: Cell, run_id: str) -> Position | None:
    of_run = (transitions.c.run_id == run_id, transitions.c.attempt_id.is_(None))
    ends = select(func.max(transitions.c.recorded_at)).where(*of_run, transitions.c.after == RunState.FINISHED.value)
    mine = select(func.max(positions.c.recorded_at)).where(*_of_cell(cell), positions.c.run_id == run_id)
    seen, finished = connection.scalar(mine), connection.scalar(ends)
    if seen is None or (finished is not None and seen <= finished):
        return None
    return _taken(connection, *_of_cell(cell))[cell.interval]


def _of_stage(pipeline: str, stage: str) -> tuple[ColumnElement[bool], ...]:
    return (positions.c.pipeline == pipeline, positions.c.stage == stage)


def _of_cell(cell: Cell) -> tuple[ColumnElement[bool], ...]:
    return (*_of_stage(cell.pipeline, cell.stage), positions.c.interval == cell.interval)


def _taken(connection: Connection, *rows: ColumnElement[bool]) -> Mapping[str, Position]:
    """The positions by interval; a later row replaces an earlier one."""
    query = select(positions.c.interval, positions.c.position).where(*rows).order_by(positions.c.id)
    return {interval: position for interval, position in connection.execute(query)}
