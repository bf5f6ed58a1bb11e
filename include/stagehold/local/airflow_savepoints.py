"""Savepoints of Airflow's SQLite database begin a transaction.

Without one, SQLite's savepoint is a transaction of its own: its end is visible at once, so that a backfill's first date
runs while the second is still being cleared; and it begins with a read, so that its first write fails at once when the
scheduler has written in between. Airflow then deletes the dates that it had begun, and its API server keeps a
connection that can write no more.
"""

from __future__ import annotations

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine


def begin_before_savepoints() -> None:
    """For every engine that this process makes."""
    event.listen(Engine, "savepoint", begin)


def begin(connection: Connection, _name: str) -> None:
    """Of the write at once, so that it waits for its turn instead of failing later."""
    if connection.dialect.driver == "pysqlite" and not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        connection.exec_driver_sql("BEGIN IMMEDIATE")
