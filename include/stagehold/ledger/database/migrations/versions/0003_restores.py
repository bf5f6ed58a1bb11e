"""Requests to compute stages of a run anew, and which attempts work for one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "restores",
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("identity", sa.String(100), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("requested_at", _TIME, nullable=False),
        sa.Column("life", _TIME),
        sa.Column("fulfilled_at", _TIME),
        sa.PrimaryKeyConstraint("run_id", "identity", name="restores_pkey"),
    )
    op.add_column("attempts", sa.Column("restore", sa.String(100)))
    op.drop_column("runs", "restore_from_stage")
