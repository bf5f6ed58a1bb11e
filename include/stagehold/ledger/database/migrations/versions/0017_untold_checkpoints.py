"""Which checkpoints have ended, and not all know that have a part in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("checkpoints", sa.Column("untold", sa.Boolean(), nullable=False, server_default=sa.false()))
