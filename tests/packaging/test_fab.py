"""An Airflow whose users are FAB's: who may call which route, by the roles that every such Airflow has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.other_airflow import OtherAirflow, build_wheel

from stagehold.settings import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

MANAGER = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
LOGGED_OUT, FORBIDDEN = 401, 403
REFUSED = (LOGGED_OUT, FORBIDDEN)
DISPOSE = ("DELETE", "/api/dags/{dag_id}/savepoints/{name}")  # which takes a role that STAGEHOLD_RIGHTS names


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By role, of each route: method, path, status."""
    other = OtherAirflow(tmp_path_factory.mktemp("fab"))
    other.make_environment()
    lock = ("-c", str(PROJECT / "requirements.txt"))
    other.add(*lock, f"{build_wheel(other.folder)}[all]", "apache-airflow-providers-fab")
    other.run("stagehold", "init", str(other.project))
    words = (str(Path(__file__).with_name("fab_rights.py")), str(other.project / "dags"), "customer_totals")
    said = other.run("python", *words, folder=other.project, AIRFLOW__CORE__AUTH_MANAGER=MANAGER)
    return dict(json.loads(said.splitlines()[-1]))


def refused(answers: dict[str, Any], role: str) -> list[tuple[str, str]]:
    return [(method, path) for method, path, status in answers[role] if status in REFUSED]


def test_people_log_in_by_form_and_by_token_and_with_their_own_password_alone(answers: dict[str, Any]) -> None:
    assert answers["manager"] == "FabAuthManager"
    assert answers["wrong password"] == LOGGED_OUT
    assert answers["by form"] == {"page": 200, "login": 302, "/api/v2/dags": 200, "/stagehold/api/pipelines": 200}


def test_nobody_is_let_in_without_logging_in_or_without_a_role(answers: dict[str, Any]) -> None:
    assert len(answers["nobody"]) > 35
    assert {status for _, _, status in answers["nobody"]} == {LOGGED_OUT}
    assert {status for _, _, status in answers["Public"]} == {FORBIDDEN}


def test_a_viewer_sees_all_and_changes_nothing(answers: dict[str, Any]) -> None:
    assert set(refused(answers, "Viewer")) == {
        (method, path) for method, path, _ in answers["Viewer"] if method != "GET"
    }


@pytest.mark.parametrize(("role", "stopped"), [("User", [DISPOSE]), ("Op", []), ("Admin", [])])
def test_who_may_run_dags_is_stopped_by_no_route_but_that_of_a_right_of_our_own(
    answers: dict[str, Any], role: str, stopped: list[tuple[str, str]]
) -> None:
    assert refused(answers, role) == stopped


def test_no_route_fails(answers: dict[str, Any]) -> None:
    told = [(role, *one) for role in ("nobody", "Public", "Viewer", "User", "Op", "Admin") for one in answers[role]]
    assert [one for one in told if one[-1] >= 500] == []
