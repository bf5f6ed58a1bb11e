"""Positions: what each interval has taken of the pipeline's incremental sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, insert, select

from stagehold.ledger.columns import DatabaseTime
from stagehold.ledger.engine import Database
from stagehold.ledger.schema import positions
from stagehold.model.records import Cell
from stagehold.model.source_position import Position, read_position, write_position


class Positions:
    """The `positions` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def taken(self, pipeline: str, stage: str) -> Mapping[str, Position]:
        """What was taken for the stage with this id, by interval, oldest first."""
        with self._database.reading() as connection:
            return _taken(connection, pipeline, stage)

    def take(self, cell: Cell, run_id: str, choose: Callable[[Mapping[str, Position]], Position]) -> Position:
        """What the cell's interval takes: what it took before, else what ``choose`` picks knowing what all others took.

        Nobody else takes anything between that knowledge and the record, so ``choose`` must be quick and ask nobody.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":  # SQLite's write lock is the same for the whole file
                connection.exec_driver_sql(f"LOCK TABLE {positions.name} IN SHARE ROW EXCLUSIVE MODE")
            known = _taken(connection, cell.pipeline, cell.stage)
            if cell.interval in known:
                return known[cell.interval]
            position = choose(known)
            row = {**vars(cell), "run_id": run_id, "position": write_position(position), "recorded_at": DatabaseTime()}
            connection.execute(insert(positions).values(row))
            return position


def _taken(connection: Connection, pipeline: str, stage: str) -> Mapping[str, Position]:
    columns = positions.c
    query = select(columns.interval, columns.position).where(columns.pipeline == pipeline, columns.stage == stage).order_by(columns.id)
    return {interval: read_position(position) for interval, position in connection.execute(query)}
