"""Brings a database to the schema that this code knows."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from stagehold.errors import LedgerTooNew, LedgerUnavailable, StorageProblem
from stagehold.ledger.database.engine import LOCK_SECONDS, Database, storage_problem
from stagehold.ledger.database.schema import SCHEMA_VERSION, VERSION_TABLE
from stagehold.settings import SANDBOX_SCHEMA

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).with_name("migrations")
_LOCK = 0x57A6E401D  # any number that nobody else on the server uses for an advisory lock


def migrate(database: Database) -> None:
    """Make or migrate the ledger; safe when several processes do it at once, and quick when there is nothing to do.

    :param database: a SQLite file is made when it does not exist, with its folder; a PostgreSQL database has to exist,
        but not the schema of a sandbox.
    """
    if database.url.get_backend_name() == "sqlite":
        _prepare_file(database)
    if schema_version(database) != SCHEMA_VERSION:
        _upgrade(database)


def schema_version(database: Database) -> str | None:
    """The version of a ledger as it is now; None when there is no ledger yet.

    :raises LedgerTooNew: this code does not know it.
    """
    with database.reading() as connection:
        return _version(connection, database)


def _prepare_file(database: Database) -> None:
    file = Path(str(database.url.database))
    if file.exists() and file.stat().st_size > 0:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerUnavailable(database.name, str(error), StorageProblem.DENIED) from error
    _switch_to_wal(database)


def _version(connection: Connection, database: Database) -> str | None:
    """The database's schema version, None when it has none yet.
    Newer than ours is refused, since older code must not write to it.
    """
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if version and version > SCHEMA_VERSION:
        raise LedgerTooNew(database.name, version, SCHEMA_VERSION)
    return version


def _switch_to_wal(database: Database) -> None:
    """Readers and a writer at the same time; kept in the file, so done once.
    SQLite's own waiting does not cover this statement.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with closing(sqlite3.connect(str(database.url.database))) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                return
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline or "locked" not in str(error):
                raise LedgerUnavailable(database.name, str(error), storage_problem(error)) from error
            time.sleep(0.02)


def _upgrade(database: Database) -> None:
    with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
            make_schema(connection)
        version = _version(connection, database)
        if version != SCHEMA_VERSION:
            logger.info(
                "Migrating the ledger %s from schema %s to %s", database.name, version or "none", SCHEMA_VERSION
            )
            _run_alembic(connection)


def _run_alembic(connection: Connection) -> None:
    # Imported here since every task opens the ledger, and hardly any of them has to migrate it.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    command.upgrade(config, "head")


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
