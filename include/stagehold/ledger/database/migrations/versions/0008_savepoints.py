"""Savepoints, who asks for one and who begins with one, and what partitions keep for later intervals."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("partitions", sa.Column("kept", sa.JSON()))
    op.add_column("checkpoints", sa.Column("savepoint", sa.String(250)))
    with op.batch_alter_table("restores") as restores:
        restores.alter_column("stage", existing_type=sa.String(250), nullable=True)
        restores.add_column(sa.Column("snapshot", sa.Text()))
        for flag in ("allow_non_restored", "as_recorded"):
            restores.add_column(sa.Column(flag, sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "savepoint_requests",
        sa.Column("name", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("stop", sa.Boolean(), nullable=False),
        sa.Column("requested_by", sa.String(250), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True)),
        sa.Column("failure", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="savepoint_requests_pkey"),
    )
    op.create_index("savepoint_requests_by_run_id", "savepoint_requests", ["run_id"])
