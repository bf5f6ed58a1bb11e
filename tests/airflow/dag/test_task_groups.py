"""Pipelines as groups of tasks in DAGs of somebody's own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.airflow.made_runs import make_dag_run

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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "include" / "pipelines").mkdir(parents=True)
    (tmp_path / "dags").mkdir()
    (tmp_path / "work.py").write_text(JOBS)
    (tmp_path / "x").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "x" / "a.parquet")
    for name in ("orders", "customers"):
        (tmp_path / "include" / "pipelines" / f"{name}.yaml").write_text(PIPELINE.format(name=name))
    return tmp_path


def loaded(project: Path, text: str = OWN):
    from airflow.dag_processing.dagbag import DagBag

    (project / "dags" / "mine.py").write_text(BEGIN + text)
    return DagBag(project / "dags", bundle_path=project / "dags", safe_mode=True)


def test_groups_of_a_pipeline_stand_between_tasks_of_ones_own(synced_airflow, project):
    bag = loaded(project)
    assert bag.import_errors == {}
    dag = bag.dags["mine"]
    edges = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert edges == {
        "ingest": ["early.first"],
        "early.first": ["early.second"],
        "early.second": ["late.third", "tell"],
        "tell": ["late.third"],
        "late.third": [],
    }
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
    edges = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
    assert edges == {
        "ingest": ["early.first"],
        "early.first": ["early.second"],
        "early.second": ["late.third", "tell"],
        "tell": ["late.third"],
        "late.third": [],
    }
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
        ('    stagehold.task_group("orders")\n    stagehold.task_group("customers")', "which has tasks of orders"),
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
