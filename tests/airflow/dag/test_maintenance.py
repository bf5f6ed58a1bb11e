"""The DAG that cleans up, as Airflow runs it."""

from __future__ import annotations

import threading

import pytest

from stagehold.ledger.ledger import Ledger
from stagehold.settings import PROJECT, load_settings

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def dag(synced_airflow):
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(PROJECT / "dags").dags["stagehold_maintenance"]


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Of another home than that of the other tests, in which nothing has run."""
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(load_settings().ledger_url) as ledger:
        yield ledger


def test_the_maintenance_dag_is_paused_until_somebody_switches_it_on(dag):
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        assert session.get(DagModel, dag.dag_id).is_paused
    assert (dag.schedule, dag.catchup, sorted(dag.task_ids)) == ("@daily", False, ["gc", "verify"])


def test_the_maintenance_tasks_run_the_commands(dag, ledger):
    assert ledger.name.endswith("ledger.db")
    assert dag.test(run_conf={"older_than": "12h", "sample": "1"}).state == "success"
    assert ledger.leases.get("maintenance").epoch == 1


def test_a_command_that_is_told_to_end_is_tried_again(dag, ledger):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from stagehold.airflow.dag.maintenance import CommandOperator

    task = CommandOperator(task_id="waits", words=("gc",))
    threading.Timer(0.5, task.on_kill).start()
    with pytest.raises(AirflowException, match=r"stagehold gc was told to end before") as raised:
        task.execute({})
    assert (isinstance(raised.value, AirflowFailException), task.retries) == (False, 3)


def test_a_command_that_fails_fails_its_task_and_not_the_other(dag, ledger):
    ledger.leases.acquire("maintenance", "somebody else", 60)
    run = dag.test(run_conf={"sample": "1"})
    assert {task.task_id: task.state for task in run.get_task_instances()} == {"gc": "failed", "verify": "success"}
