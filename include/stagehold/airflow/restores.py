"""For which request an Airflow run is restored: what only Airflow's own record of the run can tell."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.airflow.intervals import ledger_run_id
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Restore

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


def asked_restore(dag_run: DagRun, stage: str) -> Restore:
    """The request of whoever triggered the run, or of the backfill that reprocesses it last.

    A retry and a clear change neither, so they go on with it. A run that was deleted and triggered again is another
    one.
    """
    made = dag_run.created_at or dag_run.run_after
    backfill = "" if dag_run.backfill_id is None else f", backfill {dag_run.backfill_id}"
    identity = f"run of {made.astimezone(UTC).isoformat()}{backfill}"
    return Restore(
        ledger_run_id(dag_run.dag_id, dag_run.run_id), identity, stage, datetime.now(UTC), dag_run.start_date
    )


def known_restore(dag_run: DagRun, stage: str, ledger: Ledger) -> Restore:
    """The request that the run's tasks work for, or will when the run starts."""
    asked = asked_restore(dag_run, stage)
    begun = ledger.restores.of_life(asked.run_id, asked.life) if asked.life else None
    return begun or ledger.restores.get(asked.run_id, asked.identity) or asked
