"""Backfills, and what a run is told to do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("restores", sa.Column("work_order", sa.JSON()))
    op.create_table(
        "backfills",
        sa.Column("backfill_id", sa.String(32), nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("asked_by", sa.String(250), nullable=False),
        sa.Column("requested_at", TIME, nullable=False),
        sa.Column("choice", sa.JSON(), nullable=False),
        sa.Column("intervals", sa.JSON(), nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("backfill_id", name="backfills_pkey"),
    )
    op.create_index("backfills_by_pipeline_requested_at", "backfills", ["pipeline", "requested_at"])
