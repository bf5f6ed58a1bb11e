"""A migrated Airflow home for the session; everything is set before Airflow is imported, which reads it once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.airflow.in_chromium import browser, other_page, page, server
from tests.airflow.made_runs import NULLS, RANGE, HalfDone, make_dag_run, make_half_done, make_refused

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

__all__ = ["browser", "other_page", "page", "server"]

PROJECT = Path(__file__).resolve().parents[2]
PIPELINE = "shipping_priority"


@pytest.fixture(scope="session", autouse=True)
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    assert "airflow.settings" not in sys.modules, "a test module imports Airflow, which then reads another home"
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(home).items():
            patch.setenv(name, value)
        yield home


@pytest.fixture(scope="session")
def synced_airflow(airflow_home: Path) -> Path:
    """The metadata database with the repository's DAGs in it."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.db import initdb

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(PROJECT / "dags", bundle_path=PROJECT / "dags"), "dags-folder", None)
    return airflow_home


@pytest.fixture(scope="session")
def api(synced_airflow: Path) -> Iterator[TestClient]:
    """The api-server's own app, which is also the one that a resume calls."""
    from airflow.api_fastapi.main import app
    from fastapi.testclient import TestClient

    # Redirects and cookies would hide what a route answers by itself.
    with TestClient(app, follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="session")
def bearer(api: TestClient) -> Callable[[str | None], dict[str, str]]:
    """Headers of a user with the given role; the role None is a user without any permission."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    def headers(role: str | None) -> dict[str, str]:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=f"{role} user", role=role))
        return {"Authorization": f"Bearer {token}"}

    return headers


@pytest.fixture
def own_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In which there are no pipelines that other tests recorded: its bytes are for whoever may see all of them."""
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.fixture
def half_done(synced_airflow: Path, request: pytest.FixtureRequest) -> HalfDone:
    """A new half-done run; ``@pytest.mark.parametrize("half_done", [run id], indirect=True)`` names it."""
    run_id = getattr(request, "param", f"manual__{uuid4()}")
    return make_half_done(PIPELINE, run_id)


@pytest.fixture
def run_of_another(synced_airflow: Path) -> HalfDone:
    """A run of a DAG that has no regions."""
    made = HalfDone("stagehold_maintenance", f"manual__{uuid4()}")
    make_dag_run(made.dag_id, made.run_id, {})
    return made


@pytest.fixture
def refused_run(synced_airflow: Path) -> HalfDone:
    """A new run of which a gate refused partitions 3 to 7; the last of them for two reasons."""
    refused = {**dict.fromkeys(range(3, 7), (NULLS,)), 7: (NULLS, RANGE)}
    return make_refused(PIPELINE, f"manual__{uuid4()}", refused)


def _environment(home: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test run, long enough for HS512 signatures to be "
        "accepted, says the library",
        "AIRFLOW__SCHEDULER__ALLOWED_RUN_ID_PATTERN": "^.+$",
        "STAGEHOLD_HOME": str(home / "stagehold"),
    }
