"""What gates say of all partitions of a stage together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "stage_verdicts",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("fingerprint", sa.String(250), nullable=False),
        sa.Column("judged", sa.String(250), nullable=False),
        sa.Column("attempt_id", sa.String(500), nullable=False),
        sa.Column("recorded_at", TIME, nullable=False),
        sa.Column("refused", sa.JSON()),
        sa.Column("reason", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="stage_verdicts_pkey"),
        sqlite_autoincrement=True,
    )
    columns = ["pipeline", "interval", "stage", "id"]
    op.create_index("stage_verdicts_by_pipeline_interval_stage_id", "stage_verdicts", columns)
