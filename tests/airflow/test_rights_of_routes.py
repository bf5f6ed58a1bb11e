"""Every route of the web API by every role, and what hostile callers are told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from fuzz.hostile.cases import VALUES

pytestmark = pytest.mark.airflow

PIPELINE, RUN = "shipping_priority", "nobody/has begun this"
LOGGED_OUT, FORBIDDEN = 401, 403
REFUSED = (LOGGED_OUT, FORBIDDEN)
HEADERS = ("Accept", "Accept-Language", "If-None-Match", "Cookie", "X-Forwarded-Host", "Range", "Content-Type")


def routes() -> list[tuple[str, str]]:
    """Method and path of each; files of pages are public."""
    from stagehold.airflow.api import create_api

    found = (route for route in create_api().routes if isinstance(route, APIRoute))
    return sorted((method, route.path) for route in found for method in route.methods - {"HEAD", "OPTIONS"})


def filled(path: str, fill: Callable[[str], str]) -> str:
    return "/stagehold" + re.sub(r"\{(\w+)(:path)?\}", lambda place: quote(fill(place[1]), safe=""), path)


def usual(name: str) -> str:
    return {"dag_id": PIPELINE, "run_id": RUN}.get(name, "1")


def statuses(api, headers: dict[str, str]) -> Iterator[tuple[str, str, int]]:
    for method, path in routes():
        content = b"{}" if method == "POST" else None
        sent = {"Content-Type": "application/json", **headers}
        yield method, path, api.request(method, filled(path, usual), headers=sent, content=content).status_code


def test_there_are_routes_to_ask():
    assert len(routes()) > 35
    assert {method for method, _ in routes()} == {"GET", "POST", "DELETE"}


def test_nobody_is_let_in_without_logging_in_or_with_a_made_up_token(api):
    for headers in ({}, {"Authorization": "Bearer made.up.token"}, {"Authorization": "Basic YWRtaW46YWRtaW4="}):
        let_in = [(method, path, status) for method, path, status in statuses(api, headers) if status not in REFUSED]
        assert let_in == []
    assert {status for _, _, status in statuses(api, {})} == {LOGGED_OUT}


def test_a_user_without_any_role_sees_and_changes_nothing(api, bearer):
    assert {status for _, _, status in statuses(api, bearer(None))} == {FORBIDDEN}


def test_a_viewer_sees_all_and_changes_nothing(api, bearer):
    for method, path, status in statuses(api, bearer("viewer")):
        assert (status in REFUSED) == (method != "GET"), (method, path, status)


DISPOSE = ("DELETE", "/api/dags/{dag_id}/savepoints/{name}")  # which takes a role that STAGEHOLD_RIGHTS names


@pytest.mark.parametrize(("role", "stopped"), [("user", [DISPOSE]), ("op", []), ("admin", [])])
def test_who_may_run_dags_is_stopped_by_no_route_but_that_of_a_right_of_our_own(api, bearer, role, stopped):
    """What a route refuses because of the data in it, such as a waiver by a user, has tests of its own."""
    found = [(method, path) for method, path, status in statuses(api, bearer(role)) if status in REFUSED]
    assert found == stopped


@pytest.mark.parametrize("seed", range(4))
def test_hostile_paths_queries_and_headers_are_answered_in_words(api, bearer, seed):
    """Never with a trace, an error of the server's, or what was sent as a page that runs it."""
    random = Random(seed)
    texts = [value for value in VALUES if isinstance(value, str) and value and "\ud800" not in value]
    all_routes = routes()
    for _ in range(60):
        method, path = random.choice(all_routes)
        hostile = random.random()
        url = filled(path, lambda name, odd=hostile: random.choice(texts)[:500] if odd < 0.5 else usual(name))
        query = {random.choice(("limit", "offset", "stage", "first", "x" * 100, "")): random.choice(texts)[:500]}
        odd = random.choice(texts)[:500].encode("latin-1", "replace").decode("latin-1")
        header = {random.choice(HEADERS): re.sub(r"[\0\r\n\x7f-\xff]", "?", odd)}
        content = (
            random.choice([b"{}", b"[", b"\xff", b'{"a": ' * 900, b"null", b'{"dry_run": "x"}'])
            if method != "GET"
            else None
        )
        sent = {"Content-Type": "application/json", **bearer("op"), **header}
        answer = api.request(method, url, params=query, headers=sent, content=content)
        told = (method, url, query, header, answer.status_code, answer.text[:300])
        assert answer.status_code < 500, told
        assert "Traceback" not in answer.text, told
        if answer.status_code >= 400:
            assert answer.headers["content-type"].startswith("application/problem+json") or answer.status_code == 404, (
                told
            )
