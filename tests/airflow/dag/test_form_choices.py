"""The savepoints that the forms offer, and that no lake can take the DAGs away."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

MADE = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def lake(airflow_home, tmp_path, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_LAKE", str(tmp_path / "lake"))
    return Savepoints(load_settings().lake_uri)


def make(lake: Savepoints, name: str, pipeline: str, hours: int = 0) -> None:
    lake.create(Savepoint(name, pipeline, "day", f"{pipeline}/run", 1, "ann", "", MADE + timedelta(hours=hours)))


def offered():
    from stagehold.airflow.dag.form_choices import offered_savepoints

    return offered_savepoints(load_settings())


def test_each_form_offers_those_of_its_pipeline_the_newest_first_and_latest(lake):
    from stagehold.airflow.dag.compile import compile_folder

    for name, hours in (("older", 0), ("newer", 1)):
        make(lake, name, "shipping_priority", hours)
    make(lake, "another", "sales")
    assert offered() == {"shipping_priority": ("newer", "older"), "sales": ("another",)}
    (dag,) = [one for one in compile_folder(load_settings()).dags if one.dag_id == "shipping_priority"]
    param = dag.params.get_param("restore")
    assert param.schema["examples"] == ["newer", "older", "latest"]
    assert (param.resolve(), param.resolve("a/run#3")) == (None, "a/run#3")  # examples are no limit
    assert dag.params.get_param("allow_non_restored_state").resolve() is False


def test_more_than_a_form_can_show_are_not_offered(lake):
    from stagehold.airflow.dag.form_choices import MOST

    for number in range(MOST + 5):
        make(lake, f"s{number}", "sales", number)
    assert len(offered()["sales"]) == MOST


def test_the_process_of_a_task_looks_for_none(lake, monkeypatch):
    make(lake, "kept", "sales")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "sales")
    assert offered() == {}


@pytest.mark.parametrize("trouble", ["unreadable", "away", "slow"])
def test_a_lake_in_trouble_costs_the_offer_and_nothing_else(lake, monkeypatch, trouble):
    from stagehold.airflow.dag.compile import compile_folder

    answered = threading.Event()

    def look(savepoints):
        if trouble == "slow":
            answered.wait()
        raise OSError("the lake is away")

    make(lake, "kept", "shipping_priority")
    if trouble == "unreadable":
        (path,) = [one for one in lake._files.names()]
        lake._files.remove([path])
        lake._files.create(path, b"torn")
    else:
        monkeypatch.setattr(Savepoints, "all", look)
    monkeypatch.setattr("stagehold.airflow.dag.form_choices.PATIENCE", 0.2)
    found = compile_folder(load_settings())
    assert (offered(), bool(found.dags), found.problems) == ({}, True, ())
    answered.set()


def test_each_form_offers_the_intervals_that_ran_the_latest_first(lake, tmp_path, monkeypatch):
    from stagehold.airflow.dag.compile import compile_folder
    from stagehold.airflow.dag.form_choices import offered_intervals

    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    assert offered_intervals(load_settings()) == {}
    assert not (tmp_path / "ledger.db").exists()
    today = datetime.now(UTC).date().isoformat()
    with Ledger.open(load_settings().ledger_url) as ledger:
        for number, key in enumerate(("2026-11-02", "whole", "2026-11-10", "2026-11-02", today)):
            run = Run(f"r{number}", "shipping_priority", key, "cli", RunState.CREATED, MADE + timedelta(hours=number))
            ledger.runs.create(run)
    (dag,) = [one for one in compile_folder(load_settings()).dags if one.dag_id == "shipping_priority"]
    scheduled = bool(dag.schedule)
    param = dag.params.get_param("interval")
    assert param.schema["examples"] == [*([] if scheduled else [today]), "2026-11-10", "2026-11-02", "whole"]
    assert (param.resolve(), param.resolve("2030-01-01")) == (None, "2030-01-01")


def test_a_ledger_in_trouble_costs_the_offer_and_nothing_else(lake, tmp_path, monkeypatch):
    from stagehold.airflow.dag.compile import compile_folder

    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'torn.db'}")
    (tmp_path / "torn.db").write_text("this is no database")
    found = compile_folder(load_settings())
    assert not found.problems
    assert all(dag.params.get_param("interval").schema["examples"] == [] for dag in found.dags)
