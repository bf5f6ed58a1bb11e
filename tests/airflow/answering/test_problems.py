"""What the web API answers where it says no, and how it describes itself."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.airflow

API = "/stagehold/api"
ROUTE = f"{API}/dags/shipping_priority/runs"


@pytest.mark.parametrize(
    ("method", "path", "role", "status"),
    [
        ("GET", f"{ROUTE}/never/grid", "admin", 404),
        ("GET", f"{ROUTE}/never/grid", None, 403),
        ("GET", f"{API}/no/such/route", "admin", 404),
        ("PUT", f"{ROUTE}/never/grid", "admin", 405),
        ("POST", f"{ROUTE}/never/resume", "viewer", 403),
        ("POST", f"{ROUTE}/never/resume", "admin", 422),
        ("GET", "/stagehold/static/nothing.js", "admin", 404),
    ],
)
def test_every_refusal_is_a_problem_document(api, bearer, method, path, role, status):
    answer = api.request(method, path, headers={**bearer(role), "Content-Type": "application/json"})
    said = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, said["status"], said["type"]) == (status, status, "about:blank")
    assert said["title"]
    assert said["detail"]


def test_a_refusal_of_a_caller_who_is_not_logged_in_is_a_problem_document(api):
    answer = api.get(f"{API}/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


def test_an_unexpected_error_is_answered_without_its_text(synced_airflow, monkeypatch):
    from fastapi.testclient import TestClient

    from stagehold.airflow.api import create_api

    own = create_api()
    own.add_api_route("/broken", lambda: 1 // 0)
    answer = TestClient(own, raise_server_exceptions=False).get("/broken")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "division" not in answer.text


def test_a_database_of_airflows_that_is_locked_is_no_unexpected_error(synced_airflow):
    from fastapi.testclient import TestClient
    from sqlalchemy.exc import OperationalError

    from stagehold.airflow.api import create_api

    def locked() -> None:
        raise OperationalError("UPDATE dag_run SET note = 'secret'", {}, Exception("database is locked"))

    own = create_api()
    own.add_api_route("/locked", locked)
    answer = TestClient(own, raise_server_exceptions=False).get("/locked")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "Ask again in some seconds." in answer.json()["detail"]
    assert "secret" not in answer.text


def test_the_openapi_document_names_every_route_and_how_each_says_no(api, bearer):
    from fastapi.routing import APIRoute

    from stagehold.airflow.api import create_api

    document = api.get(f"{API}/openapi.json", headers=bearer("viewer")).json()
    routes = [route for route in create_api().routes if isinstance(route, APIRoute)]
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.path.replace(":path", ""), method) for route in routes for method in route.methods}
    assert document["servers"] == [{"url": "/stagehold"}]
    for methods in document["paths"].values():
        for operation in methods.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert "422" not in operation["responses"]
