"""The wheel in an Airflow of somebody's own. `make test-lowest` does the same with the lowest versions it allows."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.other_airflow import OtherAirflow, build_wheel

from stagehold.settings import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

RESOLUTION = os.environ.get("STAGEHOLD_TEST_RESOLUTION", "highest")
NOT_PYTHON = (
    "web/run_page/run_page.js",
    "web/vendor/htm-3.1.1.js",
    "web/vendor/htm-3.1.1.LICENSE",
    "web/overview_page/overview_page.js",
    "web/pipeline_page/pipeline_page.js",
    "py.typed",
    "spark/server/ivy.xml",
    "spark/server/jars.sha256",
)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherAirflow]:
    """With a new project, and a Spark server for it."""
    airflow = OtherAirflow(tmp_path_factory.mktemp("other"))
    airflow.install(RESOLUTION)
    airflow.run("stagehold", "init", str(airflow.project))
    airflow.run("stagehold", "up", "--spark-only", folder=airflow.project)
    yield airflow
    airflow.run("stagehold", "down", folder=airflow.project)


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    package = PROJECT / "include" / "stagehold"
    there = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    names = set(zipfile.ZipFile(build_wheel(tmp_path)).namelist())
    assert {name for name in there if "__pycache__" not in name} <= names
    assert {f"stagehold/{name}" for name in NOT_PYTHON} <= names


def test_a_new_project_runs_and_the_second_time_is_reused(other: OtherAirflow) -> None:
    words = ("stagehold", "run", "customer_totals", "--interval", "2026-11-20", "--json")
    first, again = (json.loads(other.run(*words, folder=other.project)) for _ in range(2))
    assert (first["computed"], first["reused"], again["computed"], again["reused"]) == (8, 0, 0, 8)


def test_the_tests_of_a_new_project_pass(other: OtherAirflow) -> None:
    assert "2 passed" in other.run("python", "-m", "pytest", "tests", folder=other.project)


@pytest.fixture(scope="module")
def loaded(other: OtherAirflow) -> dict[str, Any]:
    return other.probe()


def test_airflow_finds_provider_plugin_pages_and_dags_with_no_file_copied(
    other: OtherAirflow, loaded: dict[str, Any]
) -> None:
    assert loaded["library"].startswith(str(other.folder))
    assert loaded["plugins"] == ["stagehold"]
    assert (loaded["import_errors"], loaded["plugin_errors"]) == ({}, {})
    assert (loaded["dags"], loaded["files"]) == (["customer_totals"], ["pipelines.py"])
    assert (loaded["provider"], loaded["page"], loaded["pipelines"]) == (True, 200, ["customer_totals"])


def test_the_code_tab_shows_the_pipelines_file_and_its_functions(loaded: dict[str, Any]) -> None:
    code = loaded["code"]["customer_totals"]
    assert "# include/pipelines/customer_totals.yaml\n\n# yaml-language-server: " in code
    assert "\n# What each customer has spent.\npipeline: customer_totals" in code
    assert '@stage\ndef customer_totals(ctx: StageContext, orders: DataFrame) -> DataFrame:\n    """One row' in code


def test_the_plugin_of_a_plugins_folder_as_well_is_no_second_one(other: OtherAirflow, loaded: dict[str, Any]) -> None:
    both = other.probe(AIRFLOW__CORE__PLUGINS_FOLDER=str(PROJECT / "plugins"))
    assert both == loaded


def test_airflows_tasks_compute_the_pipeline(other: OtherAirflow, loaded: dict[str, Any]) -> None:
    other.run("airflow", "dags", "test", "customer_totals", "2026-11-21")
    listed = other.run("stagehold", "status", "--json", folder=other.project)
    runs = {run["interval"]: run for run in json.loads(listed)["runs"]}
    assert runs["2026-11-21"]["state"] == "finished"
