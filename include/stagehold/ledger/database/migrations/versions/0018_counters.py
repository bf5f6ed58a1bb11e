"""What functions of stages count, for each partition."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("partitions", sa.Column("counted", sa.JSON(none_as_null=True)))
