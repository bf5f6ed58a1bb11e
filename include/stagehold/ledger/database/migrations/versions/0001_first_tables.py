"""Runs, attempts, leases, partitions, gate results and events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_CELL_AND_PARTITION = ["pipeline", "interval", "stage", "partition", "id"]
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_runs()
    _create_attempts()
    _create_leases()
    _create_partitions()
    _create_gate_results()
    _create_events()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("launcher", sa.String(32), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("restore_from_stage", sa.String(250)),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.Column("params", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="runs_pkey"),
    )
    op.create_index("runs_by_pipeline_interval_started_at", "runs", ["pipeline", "interval", "started_at"])
    op.create_index("runs_by_started_at", "runs", ["started_at"])


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.String(500), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("region", sa.String(250), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.Column("failure", sa.Text),
        sa.PrimaryKeyConstraint("attempt_id", name="attempts_pkey"),
    )
    op.create_index("attempts_by_run_id", "attempts", ["run_id"])
    op.create_index(
        "attempts_by_pipeline_interval_region_epoch", "attempts", ["pipeline", "interval", "region", "epoch"]
    )


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(750), nullable=False),
        sa.Column("holder", sa.String(500), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="leases_pkey"),
    )


def _create_partitions() -> None:
    op.create_table(
        "partitions",
        sa.Column("id", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("attempt_id", sa.String(500), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("wave", sa.Integer, nullable=False),
        sa.Column("table_uri", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("files", sa.JSON, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("fingerprint", sa.String(250), nullable=False),
        sa.Column("compute_key", sa.String(250), nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="partitions_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("partitions_by_pipeline_interval_stage_partition_id", "partitions", _CELL_AND_PARTITION)
    op.create_index("partitions_by_run_id", "partitions", ["run_id"])


def _create_gate_results() -> None:
    op.create_table(
        "gate_results",
        sa.Column("id", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("pipeline", sa.String(250), nullable=False),
        sa.Column("interval", sa.String(250), nullable=False),
        sa.Column("stage", sa.String(250), nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("attempt_id", sa.String(500), nullable=False),
        sa.Column("suite", sa.String(250), nullable=False),
        sa.Column("expectation", sa.Text, nullable=False),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("observed", sa.Text, nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="gate_results_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("gate_results_by_pipeline_interval_stage_partition_id", "gate_results", _CELL_AND_PARTITION)


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(500), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("recorded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_run_id_id", "events", ["run_id", "id"])
