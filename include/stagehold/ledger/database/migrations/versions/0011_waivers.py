"""Waivers, which expectations a partition does not meet, and all that a gate said of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("partitions", sa.Column("refused", sa.JSON()))
    op.add_column("gate_results", sa.Column("severity", sa.String(32), nullable=False, server_default="critical"))
    for name in ("configuration", "result"):
        op.add_column("gate_results", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "waivers",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("expectation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(250), nullable=False),
        sa.Column("waived_by", sa.String(250), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", TIME, nullable=False),
        sa.Column("until", TIME),
        sa.PrimaryKeyConstraint("id", name="waivers_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("waivers_by_pipeline_interval_stage_id", "waivers", ["pipeline", "interval", "stage", "id"])
