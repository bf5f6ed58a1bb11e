"""Which suite judged a partition, so that another one can judge it without computing it again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("partitions", sa.Column("judged", sa.String(250), nullable=False, server_default=""))
