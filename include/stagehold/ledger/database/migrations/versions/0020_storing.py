"""What it took to store a partition, so that it can be weighed against computing it again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("partitions", sa.Column("storing", sa.Float))
