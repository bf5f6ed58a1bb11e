"""What attempts answered when a checkpoint was taken of their run, and which rows a checkpoint covers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("checkpoints", sa.Column("reason", sa.String(64)))
    op.add_column("checkpoints", sa.Column("fails_run", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("checkpoints", sa.Column("covers", sa.BigInteger()))
    op.create_table(
        "acknowledgements",
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt_id", sa.String(500), nullable=False),
        sa.Column("region", sa.String(250), nullable=False),
        sa.Column("share", sa.String(64)),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True)),
        sa.Column("answer", sa.String(32)),
        sa.Column("reason", sa.String(64)),
        sa.PrimaryKeyConstraint("run_id", "number", "attempt_id", name="acknowledgements_pkey"),
    )
