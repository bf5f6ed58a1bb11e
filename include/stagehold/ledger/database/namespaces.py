"""The ledgers of sandboxes in a PostgreSQL database: a schema for each, which its connections see alone."""

from __future__ import annotations

from sqlalchemy import Connection, text

from stagehold.ledger.database.engine import Database
from stagehold.settings import SANDBOX_SCHEMA


def make_schema(connection: Connection) -> None:
    """Make the schema of the sandbox that the connection is for, unless it is there. Any other has to be there."""
    if connection.scalar(text("SELECT current_schema()")) is not None:
        return
    asked = str(connection.scalar(text("SHOW search_path")))
    if asked.startswith(SANDBOX_SCHEMA):
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {asked}"))


def sandboxes_with_schema(url: str) -> tuple[str, ...]:
    """Names of the sandboxes that have a ledger in this database; none of a SQLite file."""
    database = Database(url)
    if database.url.get_backend_name() != "postgresql":
        return ()
    with database.reading() as connection:
        names = connection.scalars(text("SELECT nspname FROM pg_namespace"))
        found = [name.removeprefix(SANDBOX_SCHEMA) for name in names if name.startswith(SANDBOX_SCHEMA)]
    return tuple(name.replace("_", "-") for name in found)


def drop_schema(url: str) -> None:
    """Delete the schema of the sandbox whose ledger this is; what is no sandbox's stays."""
    database = Database(url)
    if database.url.get_backend_name() != "postgresql":
        return
    with database.writing() as connection:
        name = connection.scalar(text("SELECT current_schema()"))
        if name and name.startswith(SANDBOX_SCHEMA):
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
