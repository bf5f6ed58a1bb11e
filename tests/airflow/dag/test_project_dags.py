"""A project of somebody's own, as Airflow loads it from one line."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

JOBS = '''
def first(ctx, source):
    """Takes all rows."""


def second(ctx, first):
    return first
'''
ALERTS = "def tell(context):\n    context['told'].append(context['what'])\n"
PIPELINE = """\
pipeline: small
airflow:
  description: Small things
  display_name: Small
  owner: team
  owner_links: {team: "https://example.com/team"}
  tags: [one, two]
  max_active_runs: 2
  max_active_tasks: 3
  max_consecutive_failed_dag_runs: 5
  is_paused_upon_creation: false
  queue: usual
  execution_timeout: 2h
  on_run_failure_callback: jobs.alerts:tell
  on_success_callback: jobs.alerts:tell
stages:
  first:
    job: jobs.work:first
    source: {kind: parquet, path: x, splits: 200}
    max_parallel_tasks: 2
    output: {type: blocking}
    airflow:
      owner: others
      pool: nightly
      pool_slots: 2
      queue: large
      priority_weight: 7
      weight_rule: absolute
      executor: LocalExecutor
      max_active_tis_per_dag: 2
      max_active_tis_per_dagrun: 1
      on_failure_callback: [jobs.alerts:tell]
  second:
    job: jobs.work:second
    inputs: {first: gather}
    output: {type: blocking_persistent, table: marts.small}
  third:
    sql: sql/third.sql
    inputs: {second: gather}
    output: {type: blocking}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "include/pipelines/small.yaml": PIPELINE,
        "jobs/work.py": JOBS,
        "jobs/alerts.py": ALERTS,
        "sql/third.sql": "-- What is left.\nSELECT * FROM second\n",
        "dags/all.py": 'import stagehold  # DAGs of Airflow\n\nstagehold.dags("..")\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def loaded(project: Path):
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(project / "dags", bundle_path=project / "dags", safe_mode=True)


def test_airflow_has_the_settings_that_the_file_declares_for_the_dag(synced_airflow, project):
    bag = loaded(project)
    dag = bag.dags["small"]
    assert bag.import_errors == {}
    assert (dag.description, dag.dag_display_name, dag.tags) == ("Small things", "Small", {"stagehold", "one", "two"})
    assert (dag.max_active_runs, dag.max_active_tasks, dag.max_consecutive_failed_dag_runs) == (2, 3, 5)
    assert (dag.is_paused_upon_creation, dag.owner_links) == (False, {"team": "https://example.com/team"})
    assert dag.owner == "others, team" or dag.owner == "team, others"


def test_a_setting_of_a_stage_counts_more_than_that_of_its_pipeline(synced_airflow, project):
    dag = loaded(project).dags["small"]
    first, second = dag.get_task("first").partial_kwargs, dag.get_task("second")
    assert {name: first[name] for name in ("owner", "pool", "pool_slots", "queue", "priority_weight", "executor")} == {
        "owner": "others",
        "pool": "nightly",
        "pool_slots": 2,
        "queue": "large",
        "priority_weight": 7,
        "executor": "LocalExecutor",
    }
    assert str(dag.get_task("first").weight_rule) == "absolute" or first["weight_rule"] == "absolute"
    assert (first["max_active_tis_per_dag"], first["max_active_tis_per_dagrun"]) == (2, 1)
    assert (second.owner, second.queue, second.pool) == ("team", "usual", "default_pool")
    assert {first["execution_timeout"], second.execution_timeout} == {timedelta(hours=2)}


POD = {"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"name": "base", "image": "large"}]}}


@pytest.fixture
def with_pods(project: Path) -> Path:
    """Tasks of all stages have another pod, and those of the first a queue's size in place of that."""
    text = PIPELINE.replace("airflow:\n", f"airflow:\n  executor_config: {{pod_override: {json.dumps(POD)}}}\n", 1)
    text = text.replace("      owner: others\n", "      owner: others\n      executor_config: {cpu: 2}\n")
    (project / "include" / "pipelines" / "small.yaml").write_text(text)
    return project


def test_each_task_has_what_its_executor_is_told_as_airflow_stores_it(synced_airflow, with_pods):
    from airflow.serialization.serialized_objects import DagSerialization

    bag = loaded(with_pods)
    assert bag.import_errors == {}
    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(bag.dags["small"]))))
    told = {name: stored.get_task(name).executor_config for name in ("first", "second", "third")}
    assert told == {"first": {"cpu": 2}, "second": {"pod_override": POD}, "third": {"pod_override": POD}}


def test_a_pod_is_refused_where_kubernetes_is_to_have_it_and_its_package_is_not_there(
    synced_airflow, with_pods, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor,KubernetesExecutor")
    (error,) = loaded(with_pods).import_errors.values()
    assert "kubernetes, a Python package, is needed to hand `executor_config.pod_override` of task second, in " in error
    assert (
        "small.yaml, to Airflow's KubernetesExecutor and is not installed. Nothing was changed. `pip install" in error
    )


def test_callbacks_are_functions_of_the_project_imported_when_they_are_called(synced_airflow, project):
    dag = loaded(project).dags["small"]
    told: list[str] = []
    called = {
        "run": dag.on_failure_callback,
        "task": dag.get_task("second").on_success_callback,
        "mapped": dag.get_task("first").partial_kwargs["on_failure_callback"],
    }
    for what, functions in called.items():
        for function in functions:
            function({"told": told, "what": what})
    assert told == ["run", "task", "mapped"]


def test_a_mapped_task_is_named_by_its_stage_and_partitions(synced_airflow, project):
    assert loaded(project).dags["small"].get_task("first").map_index_template == "first [{{ share }}]"


def test_dag_and_tasks_say_what_they_read_make_and_where_the_code_is(synced_airflow, project):
    dag = loaded(project).dags["small"]
    first, second = (dag.get_task(name) for name in ("first", "second"))
    assert dag.doc_md.startswith("Small things\n\nCompiled from `small.yaml`. [Code](")
    assert "/dags/small/code)" in dag.doc_md
    assert "**first**\n\nTakes all rows.\n\n* job: `jobs.work:first`" in first.partial_kwargs["doc_md"]
    stored = "first (gather): stored (its output says so); a kill costs nothing of first that is consumable"
    assert f"* reads: first (gather)\n    * {stored}\n* output: marts.small, 1 partitions" in second.doc_md
    assert "**third**\n\nWhat is left.\n\n* job: `sql/third.sql`." in dag.get_task("third").doc_md
    assert "| third | `sql/third.sql` | 1 |" in dag.doc_md


def test_a_bad_file_is_an_import_error_and_the_good_ones_stay(synced_airflow, project):
    (project / "include" / "pipelines" / "bad.yaml").write_text("pipeline: bad\nairflow: {ownr: me}\nstages: {}\n")
    bag = loaded(project)
    (error,) = bag.import_errors.values()
    assert list(bag.dags) == ["small"]
    assert "bad.yaml:2: airflow.ownr: got 'me'" in error


def test_the_code_tab_follows_an_edit(synced_airflow, project):
    shown = Path(loaded(project).dags["small"].fileloc)
    assert shown == load_settings().home_path / "code" / "small.py"
    (project / "jobs" / "work.py").write_text(JOBS.replace("all rows", "some rows"))
    loaded(project)
    text = shown.read_text()
    assert ("Takes some rows" in text, "pipeline: small" in text, "def tell" in text) == (True, True, False)


def test_a_folder_of_pipelines_is_accepted_and_an_empty_one_is_refused(synced_airflow, project):
    from stagehold.airflow.dag.project_dags import project_dags
    from stagehold.errors.request_errors import InvalidArgument

    assert list(project_dags(project / "include" / "pipelines")) == ["small"]
    with pytest.raises(InvalidArgument, match="stagehold init PATH"):
        project_dags(project / "jobs")
