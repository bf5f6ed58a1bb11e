"""Run by the Python of an environment with FAB: prints what each of our routes answers each role, as JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
from airflow.utils.db import initdb
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from stagehold.airflow.api import create_api

ROLES = ("Public", "Viewer", "User", "Op", "Admin")
JSON = "application/json"


def answers(dags: Path) -> dict[str, Any]:
    prepare(dags)
    with TestClient(create_app(), follow_redirects=False) as client:
        found: dict[str, Any] = {
            "manager": type(get_auth_manager()).__name__,
            "wrong password": logged_in(client, "viewer", "wrong").status_code,
            "nobody": list(statuses(client, {})),
            "by form": by_form(client, "op"),
        }
        for role in ROLES:
            token = logged_in(client, role.lower(), role.lower()).json()["access_token"]
            client.cookies.clear()
            found[role] = list(statuses(client, {"Authorization": f"Bearer {token}"}))
    return found


def prepare(dags: Path) -> None:
    """A database with a user of each role, called like it, and the DAGs."""
    initdb()
    with get_application_builder() as builder:
        for role in ROLES:
            name, manager = role.lower(), builder.sm
            if not manager.find_user(name):
                address = f"{name}@example.org"
                assert manager.add_user(name, name, name, address, manager.find_role(role), password=name), role
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(dags, bundle_path=dags), "dags-folder", None)


def logged_in(client: TestClient, name: str, password: str) -> Any:
    return client.post("/auth/token", json={"username": name, "password": password})


def by_form(client: TestClient, name: str) -> dict[str, int]:
    """As a browser does it; what Airflow and we answer its cookie then."""
    page = client.get("/auth/login/")
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)
    sent = {"username": name, "password": name, "csrf_token": token[1] if token else ""}
    answer = client.post("/auth/login/", data=sent)
    found = {"page": page.status_code, "login": answer.status_code}
    found |= {path: client.get(path).status_code for path in ("/api/v2/dags", "/stagehold/api/pipelines")}
    client.cookies.clear()
    return found


def statuses(client: TestClient, headers: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
    """Of each route: method, path, status."""
    found = (route for route in create_api().routes if isinstance(route, APIRoute))
    for method, path in sorted((method, route.path) for route in found for method in route.methods):
        sent = {"Content-Type": JSON, **headers}
        content = b"{}" if method == "POST" else None
        yield method, path, client.request(method, filled(path), headers=sent, content=content).status_code


def filled(path: str) -> str:
    values = {"dag_id": sys.argv[2], "run_id": "nobody/has begun this"}
    return "/stagehold" + re.sub(r"\{(\w+)(:path)?\}", lambda place: quote(values.get(place[1], "1"), safe=""), path)


if __name__ == "__main__":
    print(json.dumps(answers(Path(sys.argv[1]))))
