"""What Airflow says of DAGs and their runs now: a query for each question, however many DAGs there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from sqlalchemy import func, select, tuple_

from stagehold.airflow.context.intervals import ledger_run_id
from stagehold.airflow.overview.pipeline_rows import DagNow
from stagehold.airflow.runs.clearing import ACTIVE_RUN_STATES

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def dags_now(dag_ids: Collection[str], session: Session) -> Mapping[str, DagNow]:
    counted = select(DagRun.dag_id, func.count()).where(DagRun.dag_id.in_(dag_ids))
    counted = counted.where(DagRun.state.in_(ACTIVE_RUN_STATES)).group_by(DagRun.dag_id)
    active = {dag_id: count for dag_id, count in session.execute(counted)}
    known = select(DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after)
    return {
        dag_id: DagNow(paused, due, active.get(dag_id, 0))
        for dag_id, paused, due in session.execute(known.where(DagModel.dag_id.in_(dag_ids)))
    }


def run_states(run_ids: Collection[str], session: Session) -> Mapping[str, str]:
    """By the ids that the ledger has; nothing of a run that Airflow does not know."""
    names = [tuple(run_id.split("/", 1)) for run_id in run_ids if "/" in run_id]
    known = select(DagRun.dag_id, DagRun.run_id, DagRun.state).where(tuple_(DagRun.dag_id, DagRun.run_id).in_(names))
    return {ledger_run_id(dag_id, run_id): str(state) for dag_id, run_id, state in session.execute(known)}
