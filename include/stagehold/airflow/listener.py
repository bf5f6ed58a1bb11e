"""What Airflow's scheduler notes in the ledger when it starts a run, since tasks are not told of backfills.

It runs inside the scheduler's loop: it uses nothing of Airflow's database but the run it is given, and does nothing for
runs that are not restored. Airflow logs what it raises and goes on; `run/planning/restoring.py` says what tasks do
then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagehold.airflow.region_operator import RESTORE_FROM_STAGE, RegionOperator
from stagehold.airflow.restores import asked_restore
from stagehold.lake.chronicle import open_ledger
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


def note_restore(dag_run: DagRun) -> None:
    """Keep for which request the run starts now, if it is to be restored."""
    stage = _stage_to_restore(dag_run)
    if stage is not None:
        with open_ledger(load_settings()) as ledger:
            ledger.restores.ask(asked_restore(dag_run, stage))


def _stage_to_restore(dag_run: DagRun) -> str | None:
    dag: Any = dag_run.dag
    if dag is None or not any(task.task_type == RegionOperator.__name__ for task in dag.tasks):
        return None
    return {**dag.params.dump(), **(dag_run.conf or {})}.get(RESTORE_FROM_STAGE) or None
