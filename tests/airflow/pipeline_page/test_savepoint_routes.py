"""The routes of savepoints inside Airflow's own app: who may call them, what they do, and what they refuse."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from tests.airflow.made_runs import HalfDone

from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.model.states import RunEvent
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG = "/stagehold/api/dags/shipping_priority"
READS = ["savepoints", "savepoints/{name}", "savepoint_requests/{name}", "restorable"]


@pytest.fixture
def name() -> str:
    return f"kept-{uuid4().hex[:8]}"


@pytest.fixture
def saved(api, bearer, half_done, name) -> HalfDone:
    """The half-done run, with a savepoint of that name."""
    answer = make(api, bearer("admin"), half_done, name)
    assert answer.status_code == 201, answer.text
    return half_done


def make(api, headers, run: HalfDone, name: str, **wanted):
    return api.post(f"{run.url}/savepoints", headers=headers, json={"name": name, **wanted})


def dispose(api, headers, name: str):
    return api.delete(f"{DAG}/savepoints/{name}", headers={"Content-Type": "application/json", **headers})


def savepoints() -> Savepoints:
    return Savepoints(load_settings().lake_uri)


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_looking_needs_the_right_to_see_runs(api, bearer, saved, name, path, role, expected):
    assert api.get(f"{DAG}/{path.format(name=name)}", headers=bearer(role)).status_code == expected


@pytest.mark.parametrize("path", READS)
def test_nobody_looks_without_logging_in(api, path):
    assert api.get(f"{DAG}/{path.format(name='any')}").status_code == 401


ROLES = [("admin", True), ("op", True), ("user", True), ("viewer", False), (None, False)]


@pytest.mark.parametrize(("role", "may"), ROLES)
def test_making_a_savepoint_needs_the_right_to_resume(api, bearer, half_done, name, role, may):
    assert make(api, bearer(role), half_done, name).status_code == (201 if may else 403)
    assert (savepoints().find(name) is not None) == may


@pytest.mark.parametrize(("role", "may"), [(role, may and role != "user") for role, may in ROLES])
def test_deleting_a_savepoint_needs_a_right_of_its_own(api, bearer, saved, name, role, may):
    assert dispose(api, bearer(role), name).status_code == (200 if may else 403)
    assert (savepoints().find(name) is None) == may


def test_nobody_changes_anything_without_logging_in(api, half_done, name):
    assert make(api, {}, half_done, name).status_code == 401
    assert dispose(api, {}, name).status_code == 401


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_another_site_changes_nothing(api, bearer, saved, name, headers, refused):
    sent = {"Content-Type": "application/json", **bearer("admin"), **headers}
    assert api.delete(f"{DAG}/savepoints/{name}", headers=sent).status_code == refused
    content = b'{"name": "other"}'
    assert api.post(f"{saved.url}/savepoints", headers=sent, content=content).status_code == refused
    assert savepoints().find(name)
    assert not savepoints().find("other")


def test_a_savepoint_is_made_shown_and_deleted(api, bearer, half_done, name):
    made = make(api, bearer("user"), half_done, name, reason="before the fix").json()
    line = made["savepoint"]
    assert (made["state"], made["requested_by"], made["failure"]) == ("made", "user user", None)
    assert (line["name"], line["reason"], line["created_by"]) == (name, "before the fix", "user user")
    assert line["run_id"] == f"{half_done.dag_id}/{half_done.run_id}"
    assert line in api.get(f"{DAG}/savepoints", headers=bearer("viewer")).json()
    assert api.get(f"{DAG}/savepoint_requests/{name}", headers=bearer("viewer")).json() == made
    shown = api.get(f"{DAG}/savepoints/{name}", headers=bearer("viewer")).json()
    assert shown["savepoint"] == line
    stages = {one["stage"]: (one["consumable"], one["partitions"]) for one in shown["stages"]}
    assert (stages["orders"], stages["orders_by_customer"], stages["top_orders"]) == ((16, 16), (5, 16), (0, 1))
    offered = api.get(f"{DAG}/restorable", headers=bearer("viewer")).json()
    assert (name, True) in {(one["reference"], one["savepoint"]) for one in offered}
    assert dispose(api, bearer("op"), name).json()["disposed"] == line
    assert api.get(f"{DAG}/savepoints/{name}", headers=bearer("viewer")).status_code == 404


def test_the_same_request_may_be_sent_again_and_another_one_of_that_name_is_refused(api, bearer, saved, name):
    assert make(api, bearer("admin"), saved, name).status_code == 201
    with Ledger.open(load_settings().ledger_url) as ledger:
        run = ledger.runs.get(f"{saved.dag_id}/{saved.run_id}")
    savepoints().remove(savepoints().get(name))
    savepoints().create(Savepoint(name, run.pipeline, run.interval, "another/run", 1, "ann", "", datetime.now(UTC)))
    refused = make(api, bearer("admin"), saved, name)
    assert (refused.status_code, f"There is a savepoint {name} already" in refused.json()["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("wanted", "status", "said"),
    [
        ({"name": "a b"}, 409, "No savepoint can be called 'a b'. Allowed are letters"),
        ({"name": "../up"}, 409, "No savepoint can be called"),
        ({"name": "kept", "stopp": True}, 422, "extra_forbidden"),
        ({}, 422, "missing"),
    ],
)
def test_what_cannot_be_made_says_why(api, bearer, half_done, wanted, status, said):
    answer = api.post(f"{half_done.url}/savepoints", headers=bearer("admin"), json=wanted)
    assert (answer.status_code, said in answer.text) == (status, True)


def test_a_run_that_has_ended_cannot_be_stopped(api, bearer, half_done, name):
    with Ledger.open(load_settings().ledger_url) as ledger:
        for event in (RunEvent.CANCEL, RunEvent.ALL_ENDED):
            ledger.runs.apply(f"{half_done.dag_id}/{half_done.run_id}", event)
    refused = make(api, bearer("admin"), half_done, name, stop=True)
    assert (refused.status_code, "--stop" in refused.json()["detail"]) == (409, True)


@pytest.mark.parametrize("run_id", ["never", "../other/run"])
def test_a_run_that_does_not_exist_has_no_savepoint(api, bearer, name, run_id):
    answer = make(api, bearer("admin"), HalfDone("shipping_priority", run_id), name)
    assert (answer.status_code, "There is no run" in answer.json()["detail"]) == (404, True)


def test_a_savepoint_of_another_pipeline_is_out_of_reach(api, bearer, half_done, name):
    """Whose DAG somebody may change says nothing of other DAGs."""
    theirs = Savepoint(name, "sales", "day", "sales/run", 1, "ann", "", datetime.now(UTC))
    savepoints().create(theirs)
    assert name not in [one["name"] for one in api.get(f"{DAG}/savepoints", headers=bearer("admin")).json()]
    assert name not in [one["reference"] for one in api.get(f"{DAG}/restorable", headers=bearer("admin")).json()]
    assert api.get(f"{DAG}/savepoints/{name}", headers=bearer("admin")).status_code == 404
    assert dispose(api, bearer("admin"), name).status_code == 404
    assert savepoints().get(name) == theirs
    savepoints().remove(theirs)


def test_a_dag_that_does_not_exist_or_is_not_ours_has_no_savepoints(api, bearer):
    for dag_id in ("never", "stagehold_maintenance"):
        answer = api.get(f"/stagehold/api/dags/{dag_id}/savepoints", headers=bearer("admin"))
        assert (answer.status_code, "is not a Stagehold pipeline" in answer.text) == (404, True)


@pytest.fixture
def slow(monkeypatch):
    """Savepoints take until the test says so, as of a run whose attempts are at work."""
    from stagehold.airflow.pipeline_page import savepoint_routes as routes

    go_on, create = threading.Event(), routes.create_savepoint

    def waiting(*arguments):
        assert go_on.wait(30)
        return create(*arguments)

    monkeypatch.setattr(routes, "create_savepoint", waiting)
    monkeypatch.setattr(routes, "AT_ONCE_SECONDS", 0.1)
    yield go_on
    go_on.set()


def test_a_savepoint_that_takes_long_is_answered_with_202_and_a_status(api, bearer, half_done, name, slow):
    promised = make(api, bearer("admin"), half_done, name)
    assert (promised.status_code, promised.json()["state"], promised.json()["savepoint"]) == (202, "pending", None)
    status = f"{DAG}/savepoint_requests/{name}"
    assert api.get(status, headers=bearer("viewer")).json() == promised.json()
    slow.set()
    for _ in range(300):
        if (answer := api.get(status, headers=bearer("viewer")).json())["state"] != "pending":
            break
        threading.Event().wait(0.05)
    assert (answer["state"], answer["savepoint"]["name"]) == ("made", name)


def test_as_many_as_a_server_may_wait_for_are_taken(api, bearer, half_done, slow):
    from stagehold.airflow.pipeline_page.savepoint_routes import MOST_AT_ONCE

    names = [f"n{number}-{uuid4().hex[:6]}" for number in range(MOST_AT_ONCE + 1)]
    codes = [make(api, bearer("admin"), half_done, one).status_code for one in names]
    assert codes == [202] * MOST_AT_ONCE + [503]
    assert api.get(f"{DAG}/savepoint_requests/{names[-1]}", headers=bearer("viewer")).status_code == 404


def test_one_that_was_not_made_says_why(api, bearer, half_done, name):
    run_id = f"{half_done.dag_id}/{half_done.run_id}"
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.savepoint_requests.ask(SavepointRequest(name, run_id, False, "ann", "", datetime.now(UTC)))
        ledger.savepoint_requests.settle(name, "the run failed over")
    told = api.get(f"{DAG}/savepoint_requests/{name}", headers=bearer("viewer")).json()
    assert (told["state"], told["failure"]) == ("failed", "the run failed over")
