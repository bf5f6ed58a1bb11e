"""Intervals that keep their outputs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "pins",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("said_by", sa.String(250), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pins_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("pins_by_pipeline_interval_id", "pins", ["pipeline", "interval", "id"])
