"""Suspending and cancelling a run over the web API: who may, and what it does in Airflow and ledger."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.airflow.made_runs import begin_attempt

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import RunState
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow


@pytest.fixture
def going(half_done):
    """The half-done run, as an attempt works for it again."""
    begin_attempt(half_done, "orders_by_customer", 60)
    return half_done


def ledger_run(run):
    with Ledger.open(load_settings().ledger_url) as ledger:
        return ledger.runs.get(f"{run.dag_id}/{run.run_id}")


def airflow_state(api, bearer, run) -> str:
    answer = api.get(f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}", headers=bearer("admin"))
    return answer.json()["state"]


def stop(api, run, how, headers):
    return api.post(f"{run.url}/{how}", headers=headers, json={})


@pytest.mark.parametrize("how", ["suspend", "cancel"])
@pytest.mark.parametrize(("role", "expected"), [("viewer", 403), (None, 403)])
def test_stopping_needs_the_right_to_mark_the_run(api, bearer, going, how, role, expected):
    assert stop(api, going, how, bearer(role)).status_code == expected
    assert ledger_run(going).state is RunState.RUNNING
    assert airflow_state(api, bearer, going) == "running"


@pytest.mark.parametrize("how", ["suspend", "cancel"])
def test_nobody_stops_without_logging_in_or_from_another_site(api, bearer, going, how):
    assert api.post(f"{going.url}/{how}", json={}).status_code == 401
    foreign = {**bearer("admin"), "Sec-Fetch-Site": "cross-site"}
    assert stop(api, going, how, foreign).status_code == 403
    assert ledger_run(going).state is RunState.RUNNING


def test_a_suspended_run_ends_behind_its_waves_and_says_who_is_ending(api, bearer, going):
    answer = stop(api, going, "suspend", bearer("user"))
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"ledger_state": "suspended", "at_work": ["orders_by_customer"]}
    assert ledger_run(going).state is RunState.SUSPENDED
    assert airflow_state(api, bearer, going) == "running", "its tasks end by themselves"
    lines = api.get(f"{going.url}/timeline", headers=bearer("user")).json()["lines"]
    assert "suspended on the page by user user" in " ".join(line["text"] for line in lines)
    again = stop(api, going, "suspend", bearer("user"))
    assert (again.status_code, "is suspended, so there is nothing to stop" in again.json()["detail"]) == (409, True)


def test_a_cancelled_run_is_marked_as_failed_and_asked_to_end(api, bearer, going):
    before = datetime.now(UTC)
    answer = stop(api, going, "cancel", bearer("user"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["ledger_state"] in ("cancelling", "canceled")
    assert ledger_run(going).cancel_asked_at >= before
    assert airflow_state(api, bearer, going) == "failed"


def test_a_run_that_is_suspended_can_still_be_cancelled_while_its_waves_end(api, bearer, going):
    assert stop(api, going, "suspend", bearer("admin")).status_code == 200
    answer = stop(api, going, "cancel", bearer("admin"))
    assert (answer.status_code, answer.json()["ledger_state"]) == (200, "suspended")
    assert airflow_state(api, bearer, going) == "failed"


@pytest.mark.parametrize("how", ["suspend", "cancel"])
def test_what_has_ended_cannot_be_stopped(api, bearer, half_done, how):
    answer = stop(api, half_done, how, bearer("admin"))
    assert answer.status_code == 409
    assert "is failed, so there is nothing to stop" in answer.json()["detail"]
    assert stop(api, half_done, f"../no_such_run/{how}", bearer("admin")).status_code in (404, 405)


def test_the_grid_says_whether_its_reader_may_stop_it(api, bearer, going, half_done):
    def may(role):
        return api.get(f"{going.url}/grid", headers=bearer(role)).json()["may_stop"]

    assert (may("user"), may("viewer")) == (True, False)
    stop(api, going, "cancel", bearer("admin"))
    assert may("user") is False
