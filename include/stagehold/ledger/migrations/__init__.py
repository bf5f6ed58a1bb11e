"""Alembic's folder. Versions are numbered; there is no way down: a ledger is only ever migrated forward."""
