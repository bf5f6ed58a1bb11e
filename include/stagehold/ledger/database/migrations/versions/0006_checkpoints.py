"""Numbered checkpoints of runs; what is in them stands in the lake."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("trigger", sa.String(32), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("triggered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("failure", sa.Text()),
        sa.Column("bytes_written", sa.BigInteger(), nullable=False),
        sa.Column("bytes_referenced", sa.BigInteger(), nullable=False),
        sa.Column("discarded_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("run_id", "number", name="checkpoints_pkey"),
    )
    op.create_index("checkpoints_by_pipeline_interval", "checkpoints", ["pipeline", "interval"])
