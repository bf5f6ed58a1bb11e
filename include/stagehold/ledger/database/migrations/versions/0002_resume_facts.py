"""Failure classes and shares of attempts, seconds of partitions, source positions,
partition counts and accepted code.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("attempts", sa.Column("failure_class", sa.String(32)))
    op.add_column("attempts", sa.Column("failure_rule", sa.Text))
    op.add_column("attempts", sa.Column("share", sa.String(64)))
    op.add_column("partitions", sa.Column("seconds", sa.Float))
    _create_positions()
    _create_partition_counts()
    _create_acceptances()


def _create_positions() -> None:
    op.create_table(
        "positions",
        sa.Column("id", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("position", sa.JSON, nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="positions_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("positions_by_pipeline_stage_id", "positions", ["pipeline", "stage", "id"])
    op.create_index("positions_by_run_id", "positions", ["run_id"])


def _create_partition_counts() -> None:
    op.create_table(
        "partition_counts",
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("partitions", sa.Integer, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "interval", "stage", name="partition_counts_pkey"),
    )


def _create_acceptances() -> None:
    op.create_table(
        "acceptances",
        sa.Column("id", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250)),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("recorded_code", sa.String(64), nullable=False),
        sa.Column("accepted_code", sa.String(64), nullable=False),
        sa.Column("accepted_by", sa.String(250), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="acceptances_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("acceptances_by_pipeline_stage_id", "acceptances", ["pipeline", "stage", "id"])
