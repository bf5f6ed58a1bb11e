"""Pipelines as groups of tasks in DAGs of somebody's own."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import make_dag_run

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill, BackfillChoice, WorkOrder
from stagehold.model.records import Run, RunState
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

JOBS = """
from stagehold import stage

@stage
def first(ctx, source):
    return source

@stage
def second(ctx, first):
    return first

@stage
def third(ctx, second):
    return second
"""
PIPELINE = """\
pipeline: {name}
params: {{least: 3}}
stages:
  first:
    job: work:first
    source: {{kind: parquet, path: x/*.parquet, splits: 4}}
    max_parallel_tasks: 2
    output: {{type: blocking}}
  second: {{job: "work:second", inputs: {{first: gather}}, output: {{type: blocking}}}}
  third: {{job: "work:third", inputs: {{second: gather}}, output: {{type: blocking_persistent, table: marts.{name}}}}}
"""
BEGIN = """\
import stagehold
from airflow.sdk import DAG, task

with DAG("mine", schedule="@daily", tags=["ours"]):
"""
OWN = """\
    @task
    def ingest(): ...

    @task
    def tell(): ...

    early = stagehold.task_group("orders", include=["first", "second"], group_id="early", tooltip="Cleaning")
    ingest() >> early
    early >> tell() >> stagehold.task_group("orders", include=["third"], group_id="late")
"""
EDGES = {
    "ingest": ["early.first"],
    "early.first": ["early.second"],
    "early.second": ["late.third", "tell"],
    "tell": ["late.third"],
    "late.third": [],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made_project(tmp_path)


def made_project(folder: Path) -> Path:
    (folder / "include" / "pipelines").mkdir(parents=True)
    (folder / "dags").mkdir()
    (folder / "work.py").write_text(JOBS)
    (folder / "x").mkdir()
    pq.write_table(pa.table({"n": [1]}), folder / "x" / "a.parquet")
    for name, least in {"orders": 3, "customers": 3, "stricter": 5}.items():
        text = PIPELINE.format(name=name).replace("least: 3", f"least: {least}")
        (folder / "include" / "pipelines" / f"{name}.yaml").write_text(text)
    return folder


def loaded(project: Path, text: str = OWN, begin: str = BEGIN):
    from airflow.dag_processing.dagbag import DagBag

    (project / "dags" / "mine.py").write_text(begin + text)
    return DagBag(project / "dags", bundle_path=project / "dags", safe_mode=True)


def edges_of(dag) -> dict[str, list[str]]:
    return {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}


def test_groups_of_a_pipeline_stand_between_tasks_of_ones_own(synced_airflow, project):
    bag = loaded(project)
    assert bag.import_errors == {}
    dag = bag.dags["mine"]
    assert edges_of(dag) == EDGES
    assert dag.task_group.children["early"].tooltip == "Cleaning"
    assert dag.tags == {"ours", "stagehold"}
    assert {"restore_from_stage", "interval", "least"} <= dag.params.keys()


def test_a_whole_pipeline_is_a_group_of_its_name(synced_airflow, project):
    dag = loaded(project, '    stagehold.task_group("orders")\n').dags["mine"]
    assert [task.task_id for task in dag.tasks] == ["orders.first", "orders.second", "orders.third"]


def test_shares_that_follow_each_other_are_a_mapped_group_within_the_group(synced_airflow, project):
    chained = PIPELINE.format(name="orders").replace("{first: gather}", "{first: forward}, max_parallel_tasks: 2")
    (project / "include" / "pipelines" / "orders.yaml").write_text(chained)
    bag = loaded(project)
    assert bag.import_errors == {}
    dag = bag.dags["mine"]
    assert edges_of(dag) == EDGES
    assert [*dag.task_group.children["early"].children] == ["early.first-to-second"]
    second = dag.get_task("early.second")
    assert second.get_closest_mapped_task_group().group_id == "early.first-to-second"
    assert (second.shares, dag.get_task("late.third").shares) == (["0-1", "2-3"], [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('    stagehold.task_group("order")', "There is no pipeline"),
        ('    stagehold.task_group("orders", include=["frist"])', "first"),
        (
            '    stagehold.task_group("orders")\n    stagehold.task_group("orders", group_id="b")',
            "first, second, third of",
        ),
        (
            '    stagehold.task_group("orders")\n    stagehold.task_group("stricter")',
            "stricter with least: 5 beside orders with least: 3'; allowed: parameters of one name with one default",
        ),
        ('    pass\nstagehold.task_group("orders")', "a call within `with DAG(...)`"),
    ],
)
def test_what_makes_no_group_is_told(synced_airflow, project, text, told):
    bag = loaded(project, f"{text}\n")
    assert told in next(iter(bag.import_errors.values()))


def test_the_dag_has_the_pipelines_page_and_its_tasks_are_found_there(api, bearer, project):
    from airflow.dag_processing.dagbag import sync_bag_to_db

    sync_bag_to_db(loaded(project), "dags-folder", None)
    states = {
        "ingest": "success",
        "early.first": "failed",
        "early.second": "upstream_failed",
        "tell": "upstream_failed",
    }
    make_dag_run("mine", "manual__1", {**states, "late.third": "upstream_failed"})
    headers = bearer("admin")
    grid = api.get("/stagehold/api/dags/mine/runs/manual__1/grid", headers=headers)
    assert grid.status_code == 200, grid.text
    assert [stage["name"] for stage in grid.json()["stages"]] == ["first", "second", "third"]
    page = api.get("/stagehold/api/dags/mine/intervals", headers=headers)
    assert page.status_code == 200, page.text


TWO = """\
    orders = stagehold.task_group("orders", include=["first", "second"])
    orders >> stagehold.task_group("customers") >> stagehold.task_group("orders", include=["third"], group_id="late")
"""
PLACES = ("both", "both~orders", "both~customers")
FAILED = {
    "orders.first": "success",
    "orders.second": "failed",
    **{f"customers.{stage}": "upstream_failed" for stage in ("first", "second", "third")},
    "late.third": "upstream_failed",
}


def test_several_pipelines_stand_in_one_dag_with_one_form(synced_airflow, project):
    bag = loaded(project, TWO)
    assert bag.import_errors == {}
    dag = bag.dags["mine"]
    edges = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert edges == {
        "orders.first": ["orders.second"],
        "orders.second": ["customers.first", "late.third"],
        "customers.first": ["customers.second"],
        "customers.second": ["customers.third"],
        "customers.third": ["late.third"],
        "late.third": [],
    }
    form = {name: dag.params.get_param(name).schema.get("enum") for name in dag.params}
    assert form["restore_pipeline"] == [None, "orders", "customers"]
    assert form["restore_from_stage"] == [None, "first", "second", "third"]
    assert {"restore", "interval", "allow_non_restored_state", "least"} <= form.keys()


def test_a_field_of_the_dags_author_is_for_all_pipelines_whatever_they_declare(synced_airflow, project):
    groups = '    stagehold.task_group("orders")\n    stagehold.task_group("stricter")\n'
    bag = loaded(project, groups, BEGIN.replace("schedule=", 'params={"least": 9}, schedule='))
    assert bag.import_errors == {}
    assert bag.dags["mine"].params["least"] == 9


@pytest.fixture(scope="module")
def both(synced_airflow, tmp_path_factory) -> str:
    """A DAG with two pipelines, which Airflow knows."""
    from airflow.dag_processing.dagbag import sync_bag_to_db

    made = made_project(tmp_path_factory.mktemp("both"))
    sync_bag_to_db(loaded(made, TWO, BEGIN.replace("mine", "both")), "dags-folder", None)
    return "both"


@pytest.fixture
def failed(both) -> str:
    """A run of it in which one pipeline failed, and the other never began."""
    run_id = f"manual__{uuid4()}"
    make_dag_run(both, run_id, FAILED)
    return run_id


def test_each_pipeline_of_a_dag_has_its_page(api, bearer, failed):
    headers = bearer("admin")
    pages = {
        place: api.get(f"/stagehold/api/dags/{place}/runs/{failed}/grid", headers=headers).json() for place in PLACES
    }
    shown = {place: (page["pipeline"], page["place"], page["dag_id"]) for place, page in pages.items()}
    assert shown == {
        "both": ("orders", "both~orders", "both"),
        "both~orders": ("orders", "both~orders", "both"),
        "both~customers": ("customers", "both~customers", "both"),
    }
    assert pages["both"]["places"] == {"orders": "both~orders", "customers": "both~customers"}
    tabs = {place: api.get(f"/stagehold/api/dags/{place}/intervals", headers=headers).json() for place in PLACES}
    assert {place: page["pipeline"] for place, page in tabs.items()} == {place: shown[place][0] for place in PLACES}
    foreign = api.get(f"/stagehold/api/dags/both~stricter/runs/{failed}/grid", headers=headers)
    assert (foreign.status_code, "customers" in foreign.json()["detail"]) == (404, True)


def test_a_resume_clears_the_tasks_of_its_pipeline_alone(api, bearer, failed):
    def cleared(place: str) -> list[str]:
        path = f"/stagehold/api/dags/{place}/runs/{failed}/resume"
        answer = api.post(path, json={"dry_run": True}, headers=bearer("admin"))
        assert answer.status_code == 200, answer.text
        return [task["task_id"] for task in answer.json()["cleared"]]

    assert cleared("both~orders") == ["orders.first", "orders.first", "orders.second", "late.third"]
    assert cleared("both~customers") == ["customers.first", "customers.first", "customers.second", "customers.third"]


@pytest.mark.parametrize("what", ["runs/{run}/resume", "runs/{run}/cancel", "backfill", "pins"])
def test_who_changes_something_names_the_pipeline(api, bearer, failed, what):
    body = {
        "pins": {"intervals": ["2026-11-20"]},
        "backfill": {"first": "2026-11-20", "last": "2026-11-20", "token": "x"},
    }
    path = f"/stagehold/api/dags/both/{what.format(run=failed)}"
    answer = api.post(path, json=body.get(what, {}), headers=bearer("admin"))
    assert answer.status_code == 409
    assert "Name one of them: both~orders, both~customers" in answer.json()["detail"]


def test_a_right_on_the_dag_is_asked_for_whichever_pipeline_is_named(api, bearer, failed):
    path = f"/stagehold/api/dags/both~orders/runs/{failed}"
    assert api.get(f"{path}/grid").status_code == 401
    assert api.get(f"{path}/grid", headers=bearer(None)).status_code == 403
    assert api.post(f"{path}/resume", json={"dry_run": True}, headers=bearer("viewer")).status_code == 403


def test_both_runs_end_when_the_run_of_the_dag_does(failed):
    started(failed, {})
    names = [DagPlace("both", name).run(failed) for name in ("orders", "customers")]
    with Ledger.open(load_settings().ledger_url) as ledger:
        for name, pipeline in zip(names, ("orders", "customers"), strict=True):
            ledger.runs.start(Run(name, pipeline, "2026-11-20", "airflow", RunState.CREATED, datetime.now(UTC)))
    changed(failed, "failed")
    with Ledger.open(load_settings().ledger_url) as ledger:
        assert [ledger.runs.get(name).state for name in names] == [RunState.FAILED, RunState.FAILED]


def test_the_scheduler_notes_a_restore_of_the_pipeline_that_is_meant(failed):
    started(failed, {"restore_from_stage": "second", "restore_pipeline": "customers"})
    with Ledger.open(load_settings().ledger_url) as ledger:
        assert [one.stage for one in ledger.restores.of_run(f"both~customers/{failed}")] == ["second"]
        assert ledger.restores.of_run(f"both~orders/{failed}") == ()


def test_a_backfill_of_one_pipeline_has_the_others_do_nothing(failed):
    begun = Backfill("both-1", "customers", "me", datetime.now(UTC), BackfillChoice(failed, failed), (), ())
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.backfills.record(begun)
    started(failed, {"stagehold_backfill": "both-1", "restore_pipeline": "customers"})
    with Ledger.open(load_settings().ledger_url) as ledger:
        (restore,) = ledger.restores.of_run(f"both~orders/{failed}")
    assert restore.work_order == WorkOrder((), backfill="both-1")


def test_the_overview_shows_a_pipeline_that_is_only_in_a_dag_of_ones_own(api, bearer, failed):
    page = api.get("/stagehold/api/overview?search=customers", headers=bearer("admin"))
    assert page.status_code == 200, page.text
    assert [(row["name"], row["place"]) for row in page.json()["pipelines"]] == [("customers", "both~customers")]


@pytest.mark.browser
def test_both_tabs_offer_the_pipelines_of_the_dag(page, failed):
    def shows(name: str) -> None:
        for button, pressed in {"orders": name == "orders", "customers": name == "customers"}.items():
            found = page.get_by_test_id("pipelines").get_by_role("button", name=button)
            expect(found).to_have_attribute("aria-pressed", str(pressed).lower())

    page.goto(f"/dags/both/runs/{failed}/plugin/stagehold")
    shows("orders")
    page.get_by_test_id("pipelines").get_by_role("button", name="customers").click()
    shows("customers")
    expect(page).to_have_url(re.compile(r"\?pipeline=customers$"))
    page.goto("/dags/both/plugin/stagehold-intervals?pipeline=customers")
    shows("customers")
    page.get_by_test_id("pipelines").get_by_role("button", name="orders").click()
    shows("orders")


def started(run_id: str, conf: dict[str, object]) -> None:
    """As the scheduler starts the run that was asked for with this configuration."""
    changed(run_id, "running", conf)


def changed(run_id: str, state: str, conf: dict[str, object] | None = None) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalar(select(DagRun).where(DagRun.dag_id == "both", DagRun.run_id == run_id))
        found.dag = SerializedDagModel.get_dag("both", session=session)
        found.start_date = datetime.now(UTC)
        found.conf = {"interval": run_id} if conf is None else {**conf, "interval": run_id}
        found.state = DagRunState(state)
        found.notify_dagrun_state_changed(msg="task_failure")
