"""Links below a task, as Airflow's REST API gives them to its pages."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from tests.airflow.made_runs import forget_asset, make_dag_run
from tests.airflow.test_mapped import mapped_dag  # noqa: F401

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Run, RunState
from stagehold.model.states import UNTIL_RUNNING
from stagehold.settings import load_settings
from stagehold.spark.session.sessions import session_id

pytestmark = pytest.mark.airflow


def links(api, bearer, dag_id, run_id, task, map_index=-1):
    path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task}/links?map_index={map_index}"
    answer = api.get(path, headers=bearer("viewer"))
    assert answer.status_code == 200, answer.text
    return answer.json()["extra_links"]


def test_every_task_of_a_region_links_to_the_tab_of_its_run(api, bearer, half_done):
    found = links(api, bearer, half_done.dag_id, half_done.run_id, "orders_by_customer")
    tab = f"/dags/shipping_priority/runs/{quote(half_done.run_id, safe='')}/plugin/stagehold"
    assert found == {"Stagehold": tab, "Spark UI": None, "Table": None}


def test_a_mapped_task_links_to_the_session_of_its_own_share(mapped_dag, api, bearer, monkeypatch):  # noqa: F811
    from stagehold.airflow.answering.api_server import server_ledger

    monkeypatch.setenv("STAGEHOLD_SPARK_UI", "http://spark:4040/")
    run_id = "manual__2026-11-20T02:00:00+00:00"
    make_dag_run(mapped_dag, run_id, {})
    settings, now = load_settings(), datetime.now(UTC)
    server_ledger.cache_clear()
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(Run(f"{mapped_dag}/{run_id}", mapped_dag, "i", "airflow", RunState.RUNNING, now))
        for epoch, (name, share) in enumerate({"old": "2-3", "new": "2-3", "other": "4-5"}.items(), start=1):
            made = Attempt(
                name, f"{mapped_dag}/{run_id}", mapped_dag, "i", "first", epoch, AttemptState.RUNNING, now, share=share
            )
            ledger.attempts.create(made, *UNTIL_RUNNING)
    spark = [links(api, bearer, mapped_dag, run_id, "first", number)["Spark UI"] for number in range(4)]
    page = "http://spark:4040/connect/session/?id="
    assert spark == [None, page + session_id(settings, "new"), page + session_id(settings, "other"), None]
    found = links(api, bearer, mapped_dag, run_id, "first", 1)["Stagehold"]
    assert found.endswith("/runs/manual__2026-11-20T02%3A00%3A00%2B00%3A00/plugin/stagehold")
    assert links(api, bearer, mapped_dag, run_id, "second")["Spark UI"] is None


def test_a_published_table_links_to_its_asset_once_there_is_one(api, bearer, half_done):
    from airflow.models.asset import AssetModel
    from airflow.utils.session import create_session

    forget_asset("marts.top_orders")  # other tests may have left it
    with create_session() as session:
        made = AssetModel(name="marts.top_orders", uri="file:///lake/marts/top_orders")
        session.add(made)
        session.flush()
        number = made.id
    try:
        found = links(api, bearer, half_done.dag_id, half_done.run_id, "top_orders")
        assert found["Table"].endswith(f"/assets/{number}")
        assert links(api, bearer, half_done.dag_id, half_done.run_id, "orders")["Table"] is None
    finally:
        with create_session() as session:
            session.delete(session.get(AssetModel, number))
