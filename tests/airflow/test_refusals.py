"""What commands say when Airflow's own app refuses: a sentence with the next command, and no document."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.airflow.made_runs import make_sources, switch

from stagehold.errors.service_errors import AirflowRefused
from stagehold.local.airflow_client import AirflowClient
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG = "shipping_priority"
WANTED = {"first": "2023-05-01", "last": "2023-05-02", "token": "other", "max_active": 1}


@pytest.fixture
def airflow(api, bearer):
    """A client of a user with the given role, as commands have it."""
    from fastapi.testclient import TestClient

    return lambda role: AirflowClient(TestClient(api.app, headers=bearer(role)))


def told(call) -> str:
    with pytest.raises(AirflowRefused) as refused:
        call()
    text = str(refused.value)
    assert "{" not in text
    assert text.count("`stagehold ") == 1
    return text


@pytest.fixture
def switched_on(synced_airflow):
    make_sources(Path(load_settings().lake_uri))
    switch(DAG, on=True)
    yield
    switch(DAG, on=False)


def test_a_refusal_of_our_own_route_has_its_own_text(airflow):
    text = told(lambda: airflow("admin").backfill(DAG, WANTED))
    assert text.startswith(f"The backfill of {DAG} was not started, and nothing was changed")
    assert text.endswith(
        "`stagehold backfill shipping_priority --from 2023-05-01 --to 2023-05-02 --dry-run` shows what would run now."
    )


@pytest.mark.parametrize(
    ("role", "dag", "wanted", "said"),
    [
        ("viewer", DAG, {}, f"Airflow did not start the backfill of {DAG} (403 Forbidden)"),
        ("admin", DAG, {"max_active": 0}, "max_active: Input should be greater than or equal to 1."),
        ("admin", "nothing", {}, "nothing is not a Stagehold pipeline"),
    ],
)
def test_a_caller_a_request_and_a_dag_that_are_refused(airflow, role, dag, wanted, said):
    assert said in told(lambda: airflow(role).backfill(dag, {**WANTED, **wanted}))


def test_a_run_that_does_not_exist_is_refused_with_its_name(airflow):
    assert "(404 Not Found): The DagRun with dag_id" in told(lambda: airflow("admin").fail_run(DAG, "never"))
    assert "never" in told(lambda: airflow("admin").resume(DAG, "never"))


def test_airflows_refusal_of_a_backfill_is_passed_on_by_our_route(airflow, switched_on, api, bearer):
    """Another backfill of the DAG goes on."""
    from airflow.models.backfill import Backfill
    from airflow.utils.session import create_session

    going_on = Backfill(
        dag_id=DAG,
        from_date=datetime(2020, 1, 1, tzinfo=UTC),
        to_date=datetime.now(UTC) + timedelta(1),
        dag_run_conf={},
    )
    with create_session() as session:
        session.add(going_on)
    try:
        token = api.get(
            f"/stagehold/api/dags/{DAG}/backfill",
            headers=bearer("admin"),
            params={"first": "2023-05-01", "last": "2023-05-01"},
        ).json()["token"]
        wanted = {"first": "2023-05-01", "last": "2023-05-01", "token": token}
        text = told(lambda: airflow("admin").backfill(DAG, wanted))
    finally:
        with create_session() as session:
            session.delete(session.merge(going_on))
    said = f"Airflow did not start the backfill (409 Conflict): There is already a running backfill for dag {DAG}."
    assert text.startswith(said)
