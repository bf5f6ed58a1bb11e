"""What becomes of data of other code in a restore, and who owns the snapshot after it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("restores", sa.Column("code_choices", sa.JSON()))
    op.add_column("restores", sa.Column("claim_mode", sa.String(32), nullable=False, server_default="no_claim"))
