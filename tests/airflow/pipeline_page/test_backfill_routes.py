"""The routes of backfills inside Airflow's own app: what they show, start and refuse, and who may call them."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.airflow.made_runs import SOURCES, SPLITS, fill_ledger, make_sources, switch

from stagehold.airflow.pipeline_page import backfill_plans
from stagehold.airflow.pipeline_page.backfill_plans import LargePlans
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import WorkOrder
from stagehold.model.kept import KeptMemory
from stagehold.run.backfill.backfill_planning import _Planning
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG = "shipping_priority"
URL = f"/stagehold/api/dags/{DAG}/backfill"
DONE, HALF, NEVER = "2024-03-01", "2024-03-02", "2024-03-03"
PLANNING_SECONDS = 30
RANGE = {"first": DONE, "last": NEVER}
ALL = dict.fromkeys((*SOURCES, "orders_by_customer", "shipping_priority"), SPLITS) | {"top_orders": 1}
RUNS = {HALF: 11 + 16 + 1, NEVER: 5 * 16 + 1}


@pytest.fixture(scope="module")
def dates(synced_airflow):
    """Of three one is done, and one stopped half-way. Meanwhile the DAG is switched on."""
    make_sources(Path(load_settings().lake_uri))
    fill_ledger(DAG, DONE, ALL)
    fill_ledger(DAG, HALF, {**dict.fromkeys(SOURCES, SPLITS), "orders_by_customer": 5})
    switch(DAG, on=True)
    yield
    switch(DAG, on=False)


@pytest.fixture
def shown(api, bearer, dates):
    """The plan that the route shows."""

    def ask(role: str | None = "admin", **asked):
        return api.get(URL, headers=bearer(role), params={**RANGE, **asked})

    return ask


@pytest.fixture
def start(api, bearer):
    from airflow.models.backfill import Backfill
    from airflow.utils.session import create_session
    from sqlalchemy import update

    def post(role: str | None = "admin", **wanted):
        return api.post(URL, headers=bearer(role), json={**RANGE, **wanted})

    yield post
    with create_session() as session:
        session.execute(update(Backfill).values(completed_at=datetime.now(UTC)))


def test_the_grid_has_every_cell_with_why_it_runs_and_what_that_costs(shown):
    answer = shown()
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert set(found) == {
        *("pipeline", "first", "last", "only", "stages", "restore_from_stage", "token", "intervals", "runs", "reuses"),
        *("seconds", "saved_seconds", "unknown", "refusal", "along", "released", "remark"),
    }
    assert (found["pipeline"], found["only"], found["restore_from_stage"], found["refusal"]) == (DAG, None, None, None)
    cells = {one["interval"]: {cell["stage"]: cell for cell in one["cells"]} for one in found["intervals"]}
    assert {key: sum(cell["runs"] for cell in some.values()) for key, some in cells.items()} == {DONE: 0, **RUNS}
    assert (found["runs"], found["released"]) == (sum(RUNS.values()), None)
    half = cells[HALF]["orders_by_customer"]
    assert (half["state"], half["partitions"], half["runs"], half["reuses"]) == ("failed", 16, 11, 5)
    assert [reason["partitions"] for reason in half["reasons"]] == ["0-4", "5-15"]
    assert cells[NEVER]["customer"]["reasons"][0]["text"] == "never computed for this interval"


def test_a_choice_of_stages_and_dates_is_shown_as_it_was_asked_for(shown):
    found = shown(stages=["customer", "orders"], only="missing").json()
    assert (found["stages"], found["only"]) == (["customer", "orders"], "missing")
    assert [one["interval"] for one in found["intervals"] if any(c["runs"] for c in one["cells"])] == [NEVER]
    assert shown(stages=["nothing"]).status_code == 404
    assert shown(only="some").status_code == 422
    assert "range in which" in shown(first="2030-01-01", last="2030-02-01").json()["detail"]


@pytest.mark.parametrize(("role", "sees", "starts"), [("op", 200, 409), ("viewer", 200, 403), (None, 403, 403)])
def test_looking_and_starting_need_the_rights_that_airflow_asks_for(shown, start, role, sees, starts):
    answer = shown(role)
    assert answer.status_code == sees
    if sees == 200:
        assert (answer.json()["refusal"] is None) is (starts != 403)
    assert start(role, token="other").status_code == starts


def test_what_is_started_is_one_backfill_of_airflows_with_the_order_of_each_date_on_record(shown, start):
    from airflow.models.backfill import Backfill
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    token = shown(stages=["customer"]).json()["token"]
    refused = start(stages=["orders"], token=token)
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    assert f"1 more cell runs than you were shown: {NEVER} orders[0-15]" in refused.json()["detail"]
    answer = start(stages=["customer"], token=token, max_active=2)
    assert answer.status_code == 200, answer.text
    assert answer.json()["intervals"] == [NEVER]
    with create_session() as session:
        made = session.get(Backfill, answer.json()["backfill_id"])
        runs = session.scalars(select(DagRun).where(DagRun.backfill_id == made.id)).all()
        assert (made.dag_id, made.max_active_runs) == (DAG, 2)
        assert [f"{run.logical_date:%Y-%m-%d}" for run in runs] == [NEVER]
        conf = made.dag_run_conf
    with Ledger.open(load_settings().ledger_url) as ledger:
        kept = ledger.backfills.get(DAG, conf["stagehold_backfill"])
    assert kept.asked_by == "admin user"
    assert kept.order(NEVER) == WorkOrder(("customer",), backfill=kept.backfill_id)
    assert kept.order(DONE).is_empty
    again = shown(stages=["customer"])
    assert again.json()["along"] is None  # that was its first run
    assert again.json()["intervals"][2]["run_id"] == runs[0].run_id
    under_way = start(stages=["customer"], token=again.json()["token"])
    assert (under_way.status_code, "is queued: wait for its end" in under_way.json()["detail"]) == (409, True)


def test_a_dag_that_is_switched_off_would_let_its_dates_wait(shown, start):
    switch(DAG, on=False)
    found = shown().json()
    refused = start(token=found["token"])
    switch(DAG, on=True)
    assert "is switched off in Airflow" in found["refusal"]
    assert (refused.status_code, found["refusal"] in refused.json()["detail"]) == (409, True)


def test_nothing_is_started_by_another_site_or_without_a_word_of_json(api, bearer, dates):
    body = '{"first": "2024-03-01", "last": "2024-03-03", "token": "x"}'
    assert api.post(URL, headers=bearer("admin"), content=body).status_code == 415
    assert api.post(URL, json={**RANGE, "token": "x"}).status_code == 401


CHANGED = {"first": "2024-06-01", "last": "2024-06-02"}
SPOILED = {"first": "2024-07-01", "last": "2024-07-02"}
LATER = {"first": "2024-05-01", "last": "2024-05-02"}  # of which nothing is on record


@pytest.fixture
def large(monkeypatch) -> Counter[str]:
    """Every backfill counts as a large one. How often intervals were planned."""
    planned: Counter[str] = Counter()
    interval = _Planning.interval
    monkeypatch.setattr(backfill_plans, "LARGE", 0)
    monkeypatch.setattr(backfill_plans, "_PLANS", LargePlans(KeptMemory()))
    monkeypatch.setattr(_Planning, "interval", lambda self, key: planned.update([key]) or interval(self, key))
    return planned


def there(ask, **asked) -> dict:
    """The plan, once it is there."""
    deadline = time.monotonic() + PLANNING_SECONDS
    answer = ask(**asked)
    assert answer.status_code == 202
    while answer.status_code == 202 and time.monotonic() < deadline:
        assert set(answer.json()) == {"planned", "of"}
        time.sleep(0.05)
        answer = ask(**asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_large_plan_is_made_aside_and_is_the_same_one_that_is_started(large, shown, start):
    found = there(shown, **LATER, stages=["lineitem"])
    assert found["runs"] == 2 * SPLITS
    assert shown(**LATER, stages=["lineitem"]).json() == found
    began = start(**LATER, stages=["lineitem"], token=found["token"])
    assert (began.status_code, began.json()["intervals"]) == (200, list(LATER.values())), began.text
    assert large == dict.fromkeys(LATER.values(), 1)


def test_a_large_plan_is_not_started_once_what_would_run_has_changed(large, shown, start):
    found = there(shown, **CHANGED, stages=["orders"])
    fill_ledger(DAG, CHANGED["last"], {"orders": SPLITS})
    refused = start(**CHANGED, stages=["orders"], token=found["token"])
    assert refused.status_code == 409
    assert f"1 cell runs no more: {CHANGED['last']} orders[0-15]" in refused.json()["detail"]
    assert large == dict.fromkeys(CHANGED.values(), 2)


def test_a_large_plan_is_not_started_once_a_source_has_changed(large, shown, start):
    """The ledger has not heard of it, so it is looked for when the plan is confirmed."""
    fill_ledger(DAG, SPOILED["first"], {"customer": SPLITS})
    file = Path(load_settings().lake_uri) / "raw" / "customer" / "03.parquet"
    found = there(shown, **SPOILED, stages=["customer"])
    aside = file.rename(file.with_name("_aside"))
    file.touch()  # another one, as large as it was
    refused = start(**SPOILED, stages=["customer"], token=found["token"])
    again = there(shown, **SPOILED, stages=["customer"])
    aside.rename(file)
    assert refused.status_code == 409
    assert f"1 more cell runs than you were shown: {SPOILED['first']} customer[3]" in refused.json()["detail"]
    assert (found["runs"], again["runs"]) == (SPLITS, SPLITS + 1)


def test_what_cannot_be_meant_is_told_of_a_large_plan_at_once(large, shown):
    assert shown(stages=["nothing"]).status_code == 404
    assert large == {}
