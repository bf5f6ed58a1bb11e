"""Commands in Airflow's own processes and containers find their Airflow by its configuration."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import jwt
import pytest

from stagehold.errors import AirflowMisconfigured
from stagehold.local.airflow_access import airflow_access, url_elsewhere
from stagehold.settings import Settings

pytestmark = pytest.mark.airflow


def test_inside_of_airflow_its_configuration_says_where_it_is_and_its_key_makes_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=str(tmp_path))
    assert url_elsewhere(settings) is None
    for name, text in {
        "CORE__EXECUTION_API_SERVER_URL": "http://api-server:8080/execution/",
        "API__BASE_URL": "http://127.0.0.1:9999",
    }.items():
        monkeypatch.setenv(f"AIRFLOW__{name}", text)
    found = airflow_access(settings)
    assert (found.url, found.elsewhere) == ("http://api-server:8080", True)

    claims = jwt.decode(
        found.token, os.environ["AIRFLOW__API_AUTH__JWT_SECRET"], algorithms=["HS512"], options={"verify_aud": False}
    )
    assert (claims["sub"], claims["role"], claims["exp"] - claims["iat"]) == ("stagehold", "admin", 600)
    monkeypatch.delenv("AIRFLOW__CORE__EXECUTION_API_SERVER_URL")
    assert url_elsewhere(settings) == "http://127.0.0.1:9999"
    monkeypatch.setenv(
        "AIRFLOW__CORE__AUTH_MANAGER", "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
    )
    monkeypatch.setattr("airflow.api_fastapi.app.get_auth_manager_cls", lambda: type("FabAuthManager", (), {}))
    with pytest.raises(AirflowMisconfigured, match="FabAuthManager lets only its own users in"):
        airflow_access(settings)
    assert airflow_access(replace(settings, airflow_token="t")).token == "t"


def test_a_token_that_is_made_is_let_in(api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the api-server of that configuration."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://testserver")
    token = airflow_access(Settings(home=str(tmp_path))).token
    answer = api.get("/stagehold/api/health", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert api.get("/stagehold/api/health", headers={"Authorization": f"Bearer {token}x"}).status_code in (401, 403)
