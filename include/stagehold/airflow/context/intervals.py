"""Which interval an Airflow run is for, and the name the ledger knows the run by."""

from __future__ import annotations

from datetime import datetime

from stagehold.model.keys.interval_key import interval_key, key_of


def interval_of(
    *,
    asked: str | None,
    partition_key: str | None,
    data_interval_start: datetime | None,
    logical_date: datetime | None,
    run_after: datetime,
    schedule: str | None,
) -> str:
    """The interval key: what the user asked for, else the partition key, else the start of the piece of time the run is
    for.

    A run without any date (triggered with none) is for the moment it was due, which a clear does not change.

    :raises InvalidInterval: what was asked for does not exist, or may be several intervals of the schedule.
    """
    if named := (asked or "").strip() or partition_key:
        return interval_key(named, schedule)
    return key_of(data_interval_start or logical_date or run_after, schedule)


def ledger_run_id(dag_id: str, run_id: str) -> str:
    """Airflow's run ids repeat across DAGs (two daily DAGs share every scheduled one), the ledger's must not."""
    return f"{dag_id}/{run_id}"
