"""Registers Stagehold's web API and its tab on the run page with Airflow."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from stagehold.airflow import listener

RUN_PAGE = {
    "name": "Stagehold",
    # Relative, so that it follows Airflow when it is served under a path.
    "bundle_url": "stagehold/static/run_page.js",
    "destination": "dag_run",
    "url_route": "stagehold",
}


class StageholdPlugin(AirflowPlugin):
    """Loaded in every task process, so the web API is only imported when the api-server asks for it."""

    name = "stagehold"
    listeners = [listener]  # noqa: RUF012
    react_apps = [RUN_PAGE]  # noqa: RUF012  (the base class declares a plain list)

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        from stagehold.airflow.api import create_api

        return [{"app": create_api(), "url_prefix": "/stagehold", "name": "stagehold"}]
