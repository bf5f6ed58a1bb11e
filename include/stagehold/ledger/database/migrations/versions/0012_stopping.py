"""Who was asked to cancel a run, and what failure enrichers say of a failure."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("runs", sa.Column("cancel_asked_at", sa.DateTime(timezone=True)))
    op.add_column("attempts", sa.Column("labels", sa.JSON(), nullable=False, server_default="{}"))
