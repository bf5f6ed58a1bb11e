"""Run by the Python of another environment: prints what its Airflow has loaded, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagcode import DagCode
from airflow.plugins_manager import get_import_errors, get_plugin_info
from airflow.providers_manager import ProvidersManager
from airflow.utils.db import initdb
from fastapi.testclient import TestClient

import stagehold


def loaded(dags: Path) -> dict[str, Any]:
    """The DAG files as Airflow has stored them, and what its api-server answers."""
    initdb()
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dags, bundle_path=dags)
    sync_bag_to_db(bag, "dags-folder", None)
    with TestClient(create_app()) as client:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="admin"))
        page = client.get("/stagehold/static/run_page/run_page.js")
        bearer = {"Authorization": f"Bearer {token}"}
        pipelines = client.get("/stagehold/api/pipelines", headers=bearer)
        overview = client.get("/stagehold/api/overview", headers=bearer)
    return {
        "library": stagehold.__file__,
        "import_errors": bag.import_errors,
        "dags": sorted(bag.dags),
        "files": sorted({str(dag.relative_fileloc) for dag in bag.dags.values()}),
        "code": {name: DagCode.code(name) for name in bag.dags},
        "plugins": [one["name"] for one in get_plugin_info()],
        "plugin_errors": get_import_errors(),
        "provider": "stagehold" in ProvidersManager().providers,
        "page": page.status_code,
        "pipelines": [pipeline["name"] for pipeline in pipelines.json()],
        "versions": {one["package"]: one["version"] for one in overview.json()["versions"]},
    }


print(json.dumps(loaded(Path(sys.argv[1]) / "dags")))
