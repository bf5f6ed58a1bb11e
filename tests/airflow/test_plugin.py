"""What loading the plugin costs, and that it registers what it should."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.airflow

HEAVY = ("fastapi", "pyspark", "delta", "deltalake", "great_expectations")
# A part of it may be there before: Airflow reads the entry point that names the provider.
OWN = {"stagehold", "stagehold.model", "stagehold.model.context", "stagehold.airflow", "stagehold.airflow.plugin"}
LOAD = """
import json, sys
from airflow.plugins_manager import AirflowPlugin
before = set(sys.modules)
import stagehold.airflow.plugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_task_process_that_loads_the_plugin_imports_nothing_of_it(airflow_home):
    loaded = loaded_by(LOAD)
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY)
    assert {name for name in loaded if name.partition(".")[0] == "stagehold"} <= OWN


def test_the_web_api_imports_neither_spark_nor_what_comes_with_it(airflow_home):
    code = "import json, sys; import stagehold.airflow.api; print(json.dumps(sorted(sys.modules)))"
    assert loaded_by(code).isdisjoint({"pyspark", "delta", "deltalake", "great_expectations", "pandas"})


def test_a_dag_file_imports_neither_the_ledger_nor_what_plans_and_runs(airflow_home):
    """Airflow imports it every few seconds."""
    code = "import json, sys; import stagehold.airflow.dag.compile; print(json.dumps(sorted(sys.modules)))"
    ours = {name for name in loaded_by(code) if name.startswith("stagehold.")}
    rooms = (
        "ledger.",
        "lake.commit.committer",
        "plan.resume",
        "run.planning",
        "run.attempt",
        "run.here",
        "spark.session",
    )
    assert {name for name in ours if name.startswith(tuple(f"stagehold.{room}" for room in rooms))} == set()
    assert len(ours) <= 130


def test_airflow_finds_the_plugin_and_nothing_else_in_the_folder(synced_airflow):
    from airflow.plugins_manager import get_plugin_info

    (plugin,) = [info for info in get_plugin_info() if info["name"] == "stagehold"]
    assert [app["destination"] for app in plugin["react_apps"]] == ["dag_run", "dag", "nav"]
    assert [app["url_prefix"] for app in plugin["fastapi_apps"]] == ["/stagehold"]
    assert len(plugin["operator_extra_links"]) == 3


def test_airflows_ui_can_tell_our_apps_apart(airflow_home):
    """It keeps each by its name once it is loaded, and finds it by its route alone."""
    from stagehold.airflow.plugin import StageholdPlugin

    for field in ("name", "url_route", "bundle_url"):
        named = [app[field] for app in StageholdPlugin.react_apps]
        assert len({*named}) == len(named), field


def test_airflow_reports_no_problem_with_plugins(api, bearer):
    assert api.get("/api/v2/plugins/importErrors", headers=bearer("admin")).json()["import_errors"] == []


def test_every_route_of_the_api_needs_a_login(airflow_home):
    from fastapi.routing import APIRoute

    from stagehold.airflow.api import create_api

    routes = [route for route in create_api().routes if isinstance(route, APIRoute)]
    assert len(routes) == 40
    assert all(route.dependencies for route in routes)


def test_every_route_that_changes_something_asks_whether_its_caller_may_and_where_it_comes_from(airflow_home):
    from fastapi.routing import APIRoute

    from stagehold.airflow.answering.access import MAY_BACKFILL, MAY_RESUME, MAY_STOP, SAME_ORIGIN_JSON
    from stagehold.airflow.api import create_api

    routes = [route for route in create_api().routes if isinstance(route, APIRoute) and route.methods != {"GET"}]
    rights = {
        **dict.fromkeys(("resume", "again", "waive", "pin", "make_docs"), MAY_RESUME),
        **dict.fromkeys(("make_savepoint", "dispose_savepoint"), MAY_RESUME),
        **dict.fromkeys(("suspend", "cancel"), MAY_STOP),
        "start_backfill": MAY_BACKFILL,
    }
    assert {route.name for route in routes} == {*rights}
    assert all({rights[route.name], SAME_ORIGIN_JSON} <= {*route.dependencies} for route in routes)
