"""Which partitions came out different though nothing explains it: until now only the text of their reason told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("partitions", sa.Column("unexplained", sa.Boolean, nullable=False, server_default=sa.false()))
    partitions = sa.table("partitions", sa.column("unexplained", sa.Boolean), sa.column("reason", sa.Text))
    told = partitions.c.reason.like("%came out different%")  # how versions before this one said it
    op.execute(partitions.update().where(told).values(unexplained=True))
