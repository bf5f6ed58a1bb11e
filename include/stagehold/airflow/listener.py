"""What Airflow's scheduler notes in the ledger when it starts a run, since tasks are not told of backfills.

It runs inside the scheduler's loop: it uses nothing of Airflow's database but the run it is given, and does nothing for
runs that are not restored. Which checkpoint a name stands for is left to the run's first task, since that means
reading the lake (`run/planning/named_snapshots.py`). Airflow logs what it raises and goes on;
`run/planning/restoring.py` says what tasks do then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagehold.airflow.region_operator import RegionOperator, project_named
from stagehold.airflow.restores.params import AskedRestore
from stagehold.airflow.restores.requests import asked_restore
from stagehold.errors import InvalidParameter
from stagehold.lake.chronicle import open_ledger
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


def note_restore(dag_run: DagRun) -> None:
    """Keep for which request the run starts now, if it is to be restored."""
    asked = _asked(dag_run)
    if asked is not None:
        with open_ledger(_settings(dag_run)) as ledger:
            ledger.restores.ask(asked_restore(dag_run, asked))


def _settings(dag_run: DagRun) -> Settings:
    dag: Any = dag_run.dag
    task = next(task for task in dag.tasks if task.task_type == RegionOperator.__name__)
    return load_settings(project=project_named(task))


def _asked(dag_run: DagRun) -> AskedRestore | None:
    """What the run's tasks refuse is no request."""
    dag: Any = dag_run.dag
    if dag is None or not any(task.task_type == RegionOperator.__name__ for task in dag.tasks):
        return None
    try:
        return AskedRestore.of({**dag.params.dump(), **(dag_run.conf or {})})
    except InvalidParameter:
        return None
