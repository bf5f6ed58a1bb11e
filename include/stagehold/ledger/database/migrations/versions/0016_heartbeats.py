"""When a lease was taken, when it was renewed last, and what its holder said then."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("leases", sa.Column("taken_at", TIME))
    op.add_column("leases", sa.Column("renewed_at", TIME))
    op.add_column("leases", sa.Column("pulse", sa.JSON(none_as_null=True)))
