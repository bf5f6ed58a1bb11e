"""What Airflow's scheduler notes in the ledger when it starts a run, since tasks are not told of backfills.

It runs inside the scheduler's loop: it uses nothing of Airflow's database but the run it is given, and does nothing for
runs that are not restored. Which checkpoint a name stands for is left to the run's first task, since that means
reading the lake (`run/planning/named_snapshots.py`). Airflow logs what it raises and goes on;
`run/planning/restoring.py` says what tasks do then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagehold.airflow.dag.region_operator import RegionOperator, pipeline_named, project_named, run_interval
from stagehold.airflow.restores.params import AskedRestore
from stagehold.airflow.restores.requests import asked_restore, order_asked
from stagehold.errors import InvalidParameter
from stagehold.lake.chronicle.chronicle import open_ledger
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

    from stagehold.ledger.ledger import Ledger
    from stagehold.model.work_order import WorkOrder


def note_restore(dag_run: DagRun) -> None:
    """Keep for which request the run starts now, if it is to be restored."""
    asked = _asked(dag_run)
    if asked is not None:
        settings = _settings(dag_run)
        with open_ledger(settings) as ledger:
            ledger.restores.ask(asked_restore(dag_run, asked, _order(dag_run, asked, settings, ledger)))


def _order(dag_run: DagRun, asked: AskedRestore, settings: Settings, ledger: Ledger) -> WorkOrder | None:
    if asked.backfill is None:
        return None
    pipeline = find_pipeline(pipeline_named(_region_task(dag_run)), settings)
    return order_asked(asked, pipeline.name, run_interval(dag_run, None, pipeline.schedule), ledger)


def _settings(dag_run: DagRun) -> Settings:
    return load_settings(project=project_named(_region_task(dag_run)))


def _region_task(dag_run: DagRun) -> Any:
    dag: Any = dag_run.dag
    return next(task for task in dag.tasks if task.task_type == RegionOperator.__name__)


def _asked(dag_run: DagRun) -> AskedRestore | None:
    """What the run's tasks refuse is no request."""
    dag: Any = dag_run.dag
    if dag is None or not any(task.task_type == RegionOperator.__name__ for task in dag.tasks):
        return None
    try:
        return AskedRestore.of({**dag.params.dump(), **(dag_run.conf or {})})
    except InvalidParameter:
        return None
