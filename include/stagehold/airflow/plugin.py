"""Registers Stagehold's web API and its pages, in the menu and as tabs of DAGs and runs, with Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

RUN_PAGE = {
    "name": "Stagehold",
    # Relative, so that it follows Airflow when it is served under a path.
    "bundle_url": "stagehold/static/run_page/run_page.js",
    "destination": "dag_run",
    "url_route": "stagehold",
}
# Airflow's UI keeps a loaded app by its name, and finds it by its route, so that both have to be its own.
PIPELINE_PAGE = {
    "name": "Stagehold intervals",
    "bundle_url": "stagehold/static/pipeline_page/pipeline_page.js",
    "destination": "dag",
    "url_route": "stagehold-intervals",
}
OVERVIEW_PAGE = {
    "name": "Pipelines",
    "bundle_url": "stagehold/static/overview_page/overview_page.js",
    "destination": "nav",
    "url_route": "stagehold-pipelines",
}


class RunStartsAndEnds:
    """Listens to the scheduler, and to people who mark a run by hand."""

    @hookimpl
    def on_dag_run_running(self, dag_run: DagRun) -> None:
        """Called when a run leaves the queue, before Airflow commits that, and so before any of its tasks can start."""
        from stagehold.airflow.listener import note_start

        note_start(dag_run)

    @hookimpl
    def on_dag_run_success(self, dag_run: DagRun) -> None:
        """Called before Airflow commits the state."""
        from stagehold.airflow.listener import note_end

        note_end(dag_run)

    @hookimpl
    def on_dag_run_failed(self, dag_run: DagRun, msg: str) -> None:
        """Called before Airflow commits the state."""
        from stagehold.airflow.listener import note_end, note_failure

        note_end(dag_run)
        note_failure(dag_run, msg)


class StageholdPlugin(AirflowPlugin):
    """Loaded in every task process, so each part is imported only by the process that uses it."""

    name = "stagehold"
    listeners = [RunStartsAndEnds()]  # noqa: RUF012
    react_apps = [RUN_PAGE, PIPELINE_PAGE, OVERVIEW_PAGE]  # noqa: RUF012  (the base class declares a plain list)

    @property
    def operator_extra_links(self) -> list[Any]:  # type: ignore[override]
        from stagehold.airflow.runs.region_links import REGION_LINKS

        return [*REGION_LINKS]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        from stagehold.airflow.api import create_api

        return [{"app": create_api(), "url_prefix": "/stagehold", "name": "stagehold"}]
