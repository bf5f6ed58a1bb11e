"""Every change of a run's and an attempt's state, with its time: until now only the last state was kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "transitions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("attempt_id", sa.String(500)),
        sa.Column("before", sa.String(32)),
        sa.Column("after", sa.String(32), nullable=False),
        sa.Column("event", sa.String(32)),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="transitions_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("transitions_by_run_id_id", "transitions", ["run_id", "id"])
