"""The pipeline of a DAG, and its runs that Airflow has not ended."""

from __future__ import annotations

from collections.abc import Collection

from airflow.models.dagrun import DagRun
from sqlalchemy import select
from sqlalchemy.orm import Session

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.runs.declared_dags import PlacedPipeline
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run
from stagehold.model.states import RUN
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


class KnownPipeline:
    """A DAG of ours as its tab knows it. ``at_work`` are its runs that Airflow has not ended, by the ledger's ids."""

    def __init__(
        self, dag: PlacedPipeline, pipeline: Pipeline, settings: Settings, ledger: Ledger, at_work: frozenset[str]
    ) -> None:
        self.place, self.places, self.pipeline, self.settings = dag.place, dag.places, pipeline, settings
        self.ledger, self.at_work = ledger, at_work

    @staticmethod
    def read(dag: PlacedPipeline, session: Session) -> KnownPipeline:
        ledger, at_work = server_ledger(dag.settings), _at_work(dag.place, session)
        return KnownPipeline(dag, dag.pipeline, dag.settings, ledger, at_work)

    @property
    def seen(self) -> object:
        """A value that changes when something changed that the tab shows."""
        return self.pipeline, self.places, self.at_work, self.ledger.revision

    def goes_on(self, run: Run) -> bool:
        """Whether the run goes on. If a run was killed, the ledger alone does not know that it has ended."""
        if run.launcher == "airflow":
            return run.run_id in self.at_work
        return not RUN.is_terminal(run.state)


def _at_work(place: DagPlace, session: Session) -> frozenset[str]:
    states: Collection[str] = ACTIVE_RUN_STATES
    query = select(DagRun.run_id).where(DagRun.dag_id == place.dag_id, DagRun.state.in_(states))
    return frozenset(place.run(run_id) for run_id in session.scalars(query))
