"""What a call that is refused says: one sentence of what was refused and why, and where to look."""

from __future__ import annotations

import json

import httpx
import pytest

from stagehold.errors import AirflowRefused, AirflowSilent
from stagehold.local.airflow_client import AirflowClient

JSON, PROBLEM, HTML, TEXT = "application/json", "application/problem+json", "text/html; charset=utf-8", "text/plain"
WANTED = {"first": "2026-11-01", "last": "2026-11-03", "token": "abc"}
NOT_STARTED = "Airflow did not start the backfill of nightly"
LOOK = "`stagehold backfill nightly --from 2026-11-01 --to 2026-11-03 --dry-run` shows what would run now."
WELL = "`stagehold status` shows whether Airflow is well, and its newest runs."
CHANGED = "The backfill of nightly was not started, and nothing was changed: 1 more cell runs. Look at the plan again."
FIELDS = [{"type": "missing", "loc": ["body", "from_date"], "msg": "Field required"}, {"loc": [], "msg": "Bad"}]
DATABASE = {"reason": "Unique constraint violation", "statement": "hidden", "message": "Serious error."}
PAGE = "<html><head><title>502 Bad\n Gateway</title></head><body><h1>Bad Gateway</h1>nginx</body></html>"


def problem(status: int, detail: str, **more: object) -> str:
    return json.dumps({"type": "about:blank", "title": "Conflict", "status": status, "detail": detail, **more})


def client(status: int, kind: str, body: str) -> AirflowClient:
    answer = httpx.Response(status, headers={"content-type": kind}, text=body)
    return AirflowClient(httpx.Client(base_url="http://airflow", transport=httpx.MockTransport(lambda _: answer)))


@pytest.mark.parametrize(
    ("status", "kind", "body", "told"),
    [
        (409, PROBLEM, problem(409, CHANGED), f"{CHANGED} {LOOK}"),
        (
            404,
            PROBLEM,
            problem(404, "There is no pipeline x. There are: y."),
            f"There is no pipeline x. There are: y. {WELL}",
        ),
        (403, PROBLEM, problem(403, "Forbidden"), f"{NOT_STARTED} (403 Forbidden), and does not say why. {WELL}"),
        (
            422,
            PROBLEM,
            problem(422, "token: too short", errors=[{"loc": ["body", "token"], "msg": "too short"}]),
            f"{NOT_STARTED} (422 Unprocessable Entity): token: too short. {LOOK}",
        ),
        (
            409,
            JSON,
            json.dumps({"detail": "There is already a running backfill for dag nightly"}),
            f"{NOT_STARTED} (409 Conflict): There is already a running backfill for dag nightly. {LOOK}",
        ),
        (
            422,
            JSON,
            json.dumps({"detail": FIELDS}),
            f"{NOT_STARTED} (422 Unprocessable Entity): from_date: Field required; Bad. {LOOK}",
        ),
        (
            409,
            JSON,
            json.dumps({"detail": DATABASE}),
            f"{NOT_STARTED} (409 Conflict): Unique constraint violation. Serious error. {LOOK}",
        ),
        (
            404,
            JSON,
            json.dumps({"detail": "Not Found"}),
            f"{NOT_STARTED} (404 Not Found), and does not say why. {WELL}",
        ),
        (500, JSON, json.dumps(["odd"]), f"{NOT_STARTED} (500 Internal Server Error), and does not say why. {WELL}"),
        (502, HTML, PAGE, f"{NOT_STARTED} (502 Bad Gateway): 502 Bad Gateway. {WELL}"),
        (
            503,
            TEXT,
            "upstream connect error\n or disconnect",
            f"{NOT_STARTED} (503 Service Unavailable): upstream connect error or disconnect. {WELL}",
        ),
        (503, TEXT, "", f"{NOT_STARTED} (503 Service Unavailable), and does not say why. {WELL}"),
        (599, TEXT, "", f"{NOT_STARTED} (599), and does not say why. {WELL}"),
        (302, HTML, "", f"{NOT_STARTED} (302 Found), and does not say why. {WELL}"),
    ],
)
def test_a_refusal_says_what_was_refused_and_why_and_where_to_look(status, kind, body, told):
    with pytest.raises(AirflowRefused) as refused:
        client(status, kind, body).backfill("nightly", WANTED)
    assert str(refused.value).replace("Unprocessable Content", "Unprocessable Entity") == told
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda airflow: airflow.resume("nightly", "manual__1"),
            "Airflow did not resume nightly/manual__1 (409 Conflict)",
        ),
        (lambda airflow: airflow.again("nightly", "manual__1", ["a"]), "Airflow did not resume nightly/manual__1"),
        (lambda airflow: airflow.fail_run("nightly", "manual__1"), "Airflow did not mark nightly/manual__1 as failed"),
        (
            lambda airflow: airflow.run("nightly", "x"),
            "did not carry out GET /api/v2/dags/nightly/dagRuns/x (409 Conflict)",
        ),
    ],
)
def test_each_call_says_for_what_it_was(call, told):
    with pytest.raises(AirflowRefused) as refused:
        call(client(409, JSON, '{"detail": "No"}'))
    assert told in str(refused.value)
    assert "(409 Conflict): No. `stagehold status" in str(refused.value)


def test_what_is_not_an_api_or_not_there_is_told_as_such():
    with pytest.raises(AirflowSilent, match="to resume nightly/x: what answered is not its API"):
        client(200, HTML, "<html>Sign in</html>").resume("nightly", "x")
    with (
        httpx.Client(base_url="http://127.0.0.1:9") as nobody,
        pytest.raises(AirflowSilent, match=r"Airflow at http://127.0.0.1:9 gave no answer .*`stagehold up` starts it"),
    ):
        AirflowClient(nobody).resume("nightly", "x")
