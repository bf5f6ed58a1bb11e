"""How large ledger and lake are, as the ledger's database can tell without a look at the lake."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, TableValuedAlias, cast, func, select, true

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import metadata, partitions
from stagehold.model.standing import PartitionState


class Sizes:
    """Sums over all of a ledger: they take seconds where millions of partitions are on record."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ledger_bytes(self) -> int:
        """Bytes on disk: with SQLite its file without the log, with PostgreSQL our tables with their indexes."""
        with self._database.reading() as connection:
            return _sqlite_bytes(connection) if _is_sqlite(connection) else _postgresql_bytes(connection)

    def lake(self, pipelines: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Partitions and bytes of the data that the newest records of a pipeline's partitions name, with the state that
        these keep. By pipeline; nothing of one that has no data."""
        with self._database.reading() as connection:
            data = _sums(connection, _data(connection, pipelines))
            state = _sums(connection, _state(connection, pipelines))
        return {pipeline: (count, size + state.get(pipeline, (0, 0))[1]) for pipeline, (count, size) in data.items()}


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def _sqlite_bytes(connection: Connection) -> int:
    pages, size = (
        connection.exec_driver_sql(f"PRAGMA {figure}").scalar_one() for figure in ("page_count", "page_size")
    )
    return int(pages) * int(size)


def _postgresql_bytes(connection: Connection) -> int:
    names = [table.name for table in metadata.sorted_tables]
    sizes = connection.execute(select(*(func.pg_total_relation_size(func.to_regclass(name)) for name in names))).one()
    return sum(size or 0 for size in sizes)


def _sums(connection: Connection, query: Select[Any]) -> dict[str, tuple[int, int]]:
    return {pipeline: (count, int(size or 0)) for pipeline, count, size in connection.execute(query)}


def _data(connection: Connection, pipelines: Collection[str]) -> Select[Any]:
    file = _elements(connection, partitions.c.files, "file")
    return _summed(connection, file, pipelines).select_from(partitions.join(file, true()))


def _state(connection: Connection, pipelines: Collection[str]) -> Select[Any]:
    part = _elements(connection, partitions.c.kept, "part")
    file = _elements(connection, _member(connection, part.c.value, "files"), "file")
    joined = partitions.join(part, true()).join(file, true())
    return _summed(connection, file, pipelines).select_from(joined).where(partitions.c.kept.is_not(None))


def _summed(connection: Connection, file: TableValuedAlias, pipelines: Collection[str]) -> Select[Any]:
    columns = partitions.c
    newest = select(func.max(columns.id)).where(columns.pipeline.in_(pipelines))
    newest = newest.group_by(columns.pipeline, columns.interval, columns.stage, columns.partition)
    size = func.sum(_number(connection, file.c.value, "bytes"))
    query = select(columns.pipeline, func.count(columns.id.distinct()), size)
    return query.where(
        columns.id.in_(newest), columns.state.in_([state for state in PartitionState if state.has_data])
    ).group_by(columns.pipeline)


def _elements(connection: Connection, listed: ColumnElement[Any], name: str) -> TableValuedAlias:
    """A row for each element of a list in JSON."""
    rows = func.json_each(listed) if _is_sqlite(connection) else func.json_array_elements(listed)
    return rows.table_valued("value", name=name)


def _member(connection: Connection, value: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    if _is_sqlite(connection):
        return func.json_extract(value, f"$.{name}")
    return func.json_extract_path(value, name)


def _number(connection: Connection, value: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    if _is_sqlite(connection):
        return func.json_extract(value, f"$.{name}")
    return cast(func.json_extract_path_text(value, name), BigInteger)
