"""Run by Alembic inside the transaction that `migrate` holds the lock with."""

from __future__ import annotations

from alembic import context

from stagehold.ledger.database.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE
)
context.run_migrations()
