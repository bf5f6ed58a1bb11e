"""The one place where the ledger's rows become records, and the other way round: a column is called as the field is.

A `Cell` is three columns. Whatever else is not a plain value has a column type of its own (`columns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping
from sqlalchemy.sql.expression import Executable

from stagehold.ledger.database.engine import Database
from stagehold.model.records import Cell

Record = TypeVar("Record")

_CELL = "cell"
_COLUMNS = {"table": "table_uri"}  # TABLE is a word of SQL


def row_of(record: object) -> dict[str, Any]:
    """The record as a row, as an INSERT takes it."""
    row = {_COLUMNS.get(name, name): value for name, value in vars(record).items() if name != _CELL}
    cell = getattr(record, _CELL, None)
    return {**row, **vars(cell)} if cell else row


def record_of(kind: type[Record], row: RowMapping) -> Record:
    """A record of this kind. The ids of rows are left out: they mean nothing in another ledger, and a record may go to
    one. What a query did not ask for, as it is long, is as empty as a new record's.
    """
    columns: Mapping[str, str] = _columns_of(kind)  # type: ignore[arg-type]  # a class is hashable
    given: dict[str, Any] = {name: row[column] for name, column in columns.items() if column in row}
    if _CELL in columns:
        given[_CELL] = Cell(row["pipeline"], row["stage"], row["interval"])
    return kind(**given)


def records(connection: Connection, kind: type[Record], query: Executable) -> tuple[Record, ...]:
    """All that the query finds, as records of this kind."""
    return tuple(record_of(kind, row) for row in connection.execute(query).mappings())


def read_all(database: Database, kind: type[Record], query: Executable) -> tuple[Record, ...]:
    """`records` in a transaction of its own."""
    with database.reading() as connection:
        return records(connection, kind, query)


def read_one(database: Database, kind: type[Record], query: Executable) -> Record | None:
    """The only record that the query can find, if it is there, in a transaction of its own."""
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return record_of(kind, row) if row else None


@cache
def _columns_of(kind: Any) -> Mapping[str, str]:
    return {field.name: _COLUMNS.get(field.name, field.name) for field in fields(kind)}
