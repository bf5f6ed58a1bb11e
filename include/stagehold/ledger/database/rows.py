"""The one place where the ledger's rows become records, and the other way round: a column is called as the field is.

A `Cell` is three columns. Whatever else is not a plain value has a column type of its own (`columns.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
    return _made(kind, _places(kind, tuple(row.keys())), tuple(row.values()))  # type: ignore[arg-type]  # hashable


def records(connection: Connection, kind: type[Record], query: Executable) -> tuple[Record, ...]:
    """All that the query finds, as records of this kind."""
    found = connection.execute(query)
    places = _places(kind, tuple(found.keys()))  # type: ignore[arg-type]  # a class is hashable
    return tuple(_made(kind, places, row) for row in found)


def read_all(database: Database, kind: type[Record], query: Executable) -> tuple[Record, ...]:
    """`records` in a transaction of its own."""
    with database.reading() as connection:
        return records(connection, kind, query)


def read_one(database: Database, kind: type[Record], query: Executable) -> Record | None:
    """The only record that the query can find, if it is there, in a transaction of its own."""
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return record_of(kind, row) if row else None


# Where in a row the fields of a record are, and where the columns of its cell, if it has one.
_Places = tuple[tuple[tuple[str, int], ...], tuple[int, int, int] | None]


@cache
def _places(kind: Any, columns: tuple[str, ...]) -> _Places:
    names = {field.name: _COLUMNS.get(field.name, field.name) for field in fields(kind)}
    found = tuple((name, columns.index(column)) for name, column in names.items() if column in columns)
    of_cell = ("pipeline", "stage", "interval")
    pipeline, stage, interval = (columns.index(name) if _CELL in names else -1 for name in of_cell)
    return found, (pipeline, stage, interval) if _CELL in names else None


def _made(kind: type[Record], places: _Places, row: Sequence[Any]) -> Record:
    own, cell = places
    given = {name: row[place] for name, place in own}
    if cell:
        pipeline, stage, interval = cell
        given[_CELL] = Cell(row[pipeline], row[stage], row[interval])
    return kind(**given)
