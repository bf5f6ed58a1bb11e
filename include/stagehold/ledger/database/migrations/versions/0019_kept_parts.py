"""Which part of a key an acceptance is about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("acceptances", sa.Column("part", sa.String(64), nullable=False, server_default="code"))
