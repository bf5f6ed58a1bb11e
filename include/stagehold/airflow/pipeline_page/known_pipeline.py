"""The pipeline of a DAG, and its runs that Airflow has not ended."""

from __future__ import annotations

from collections.abc import Collection

from airflow.models.dagrun import DagRun
from sqlalchemy import select
from sqlalchemy.orm import Session

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.context.run_names import ledger_run_id
from stagehold.airflow.runs.dag_runs import declared_dag
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run
from stagehold.model.states import RUN
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline


class KnownPipeline:
    """A DAG of ours as its tab knows it. ``at_work`` are its runs that Airflow has not ended, by the ledger's ids."""

    def __init__(
        self, dag_id: str, pipeline: Pipeline, settings: Settings, ledger: Ledger, at_work: frozenset[str]
    ) -> None:
        self.dag_id, self.pipeline, self.settings = dag_id, pipeline, settings
        self.ledger, self.at_work = ledger, at_work

    @staticmethod
    def read(dag_id: str, session: Session) -> KnownPipeline:
        """The pipeline of a DAG.

        :raises ForeignDag: the DAG is not ours.
        """
        dag = declared_dag(dag_id, session)
        settings = load_settings(project=dag.project)
        pipeline = find_pipeline(dag.pipeline, settings)
        return KnownPipeline(dag_id, pipeline, settings, server_ledger(settings), _at_work(dag_id, session))

    @property
    def seen(self) -> object:
        """A value that changes when something changed that the tab shows."""
        return self.pipeline, self.at_work, self.ledger.revision

    def goes_on(self, run: Run) -> bool:
        """Whether the run goes on. If a run was killed, the ledger alone does not know that it has ended."""
        if run.launcher == "airflow":
            return run.run_id in self.at_work
        return not RUN.is_terminal(run.state)


def _at_work(dag_id: str, session: Session) -> frozenset[str]:
    states: Collection[str] = ACTIVE_RUN_STATES
    query = select(DagRun.run_id).where(DagRun.dag_id == dag_id, DagRun.state.in_(states))
    return frozenset(ledger_run_id(dag_id, run_id) for run_id in session.scalars(query))
