"""Targets of a project: which settings and variables they give, and what counts more."""

from __future__ import annotations

import json
import logging
import os

import pytest
from typer.testing import CliRunner

from stagehold import settings as settings_module
from stagehold.cli.main import app
from stagehold.errors import InvalidSetting, InvalidSpec
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

FILE = """\
vars: {country: de}
targets:
  dev: {lake: dev/lake, spark_cores: 3, only_spark_writer: true}
  prod:
    lake: s3://shop/lake
    ledger: postgresql://me@db/ledger
    vars: {country: fr}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "include" / "pipelines").mkdir(parents=True)
    (tmp_path / "stagehold.yaml").write_text(FILE)
    return tmp_path


def load(project, **environment):
    return load_settings({"STAGEHOLD_PROJECT": str(project), **environment})


def test_a_target_gives_settings_seen_from_the_project(project):
    dev, prod = load(project, STAGEHOLD_TARGET="dev"), load(project, STAGEHOLD_TARGET="prod")
    assert (dev.lake, dev.spark_cores, dev.only_spark_writer) == (f"{project}/dev/lake", 3, True)
    assert (prod.lake_uri, prod.ledger_url) == ("s3://shop/lake", "postgresql://me@db/ledger")
    assert load(project).lake == ""


def test_a_variable_counts_more_and_that_is_said_once_without_values(project, caplog):
    settings_module._tell_of_stronger.cache_clear()
    for _ in range(2):
        found = load(project, STAGEHOLD_TARGET="prod", STAGEHOLD_LEDGER="postgresql://me:pass@other/ledger")
        assert (found.lake_uri, found.ledger_url) == ("s3://shop/lake", "postgresql://me:pass@other/ledger")
    assert caplog.messages == ["STAGEHOLD_LEDGER is set, so it counts, and not what target prod says."]


def test_processes_that_are_started_with_these_settings_have_them_and_hear_nothing(project, caplog):
    caplog.set_level(logging.WARNING)
    found = load(project, STAGEHOLD_TARGET="dev")
    assert load_settings(found.environment) == found
    assert caplog.messages == []


def test_a_dag_file_that_names_the_project_uses_the_target_of_the_environment(project):
    assert load_settings({"STAGEHOLD_TARGET": "dev"}, str(project)).lake == f"{project}/dev/lake"


def test_a_sandbox_of_a_target_lies_beside_its_lake(project):
    found = load(project, STAGEHOLD_TARGET="prod", STAGEHOLD_SANDBOX="try-it")
    assert found.lake_uri == "s3://shop/lake-sandboxes/try-it/lake"


@pytest.mark.parametrize(
    ("text", "target", "error", "said"),
    [
        (FILE, "prd", InvalidSetting, r"'prd'; allowed: targets of .*stagehold.yaml: dev, prod"),
        ("vars: {}\n", "dev", InvalidSetting, "it has none"),
        (
            FILE.replace("spark_cores", "spark_coers"),
            "prod",
            InvalidSpec,
            r"yaml:3: targets.dev.spark_coers: .*did you",
        ),
        (FILE.replace("spark_cores", "project"), "dev", InvalidSpec, r"yaml:3: targets.dev.project: got 'project'"),
        (FILE.replace("spark_cores: 3", "spark_cores: [3]"), "dev", InvalidSpec, r"got \[3\]; allowed: text"),
        (FILE.replace("spark_cores: 3", "spark_cores: many"), "dev", InvalidSetting, "SPARK_CORES is 'many'"),
        (FILE.replace("vars: {country: fr}", "vars: fr"), "dev", InvalidSpec, "yaml:7: targets.prod.vars"),
        ("targets: [dev]\n", "dev", InvalidSpec, "yaml:1: targets: got"),
    ],
)
def test_what_no_target_can_be_is_refused_with_what_there_is(project, text, target, error, said):
    (project / "stagehold.yaml").write_text(text)
    with pytest.raises(error, match=said):
        load(project, STAGEHOLD_TARGET=target)


def test_a_targets_variables_count_more_than_a_pipelines(project, monkeypatch):
    jobs = project / "work"
    jobs.mkdir()
    (jobs / "jobs.py").write_text("def orders(ctx, source): ...\n")
    (project / "include" / "pipelines" / "p.yaml").write_text(
        "pipeline: p\nvars: {country: at}\nstages:\n  orders:\n    job: work.jobs:orders\n"
        "    source: {kind: parquet, path: a, splits: 1}\n    params: {country: '${vars.country}'}\n"
    )

    def country(**environment):
        return find_pipeline("p", load(project, **environment)).stage("orders").params["country"]

    assert (country(STAGEHOLD_TARGET="dev"), country(STAGEHOLD_TARGET="prod"), country()) == ("at", "fr", "at")


def test_the_option_chooses_for_a_command_and_status_names_it(project, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_PROJECT", str(project))
    for name in ("STAGEHOLD_HOME", "STAGEHOLD_LAKE", "STAGEHOLD_LEDGER", "STAGEHOLD_TARGET"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(app, ["--target", "dev", "status"])
    assert result.output.splitlines()[0] == f"target dev, lake {project}/dev/lake"
    assert "STAGEHOLD_TARGET" not in os.environ
    assert json.loads(CliRunner().invoke(app, ["--target", "dev", "status", "--json"]).stdout)["target"] == "dev"
    refused = CliRunner().invoke(app, ["--target", "test", "status"])
    assert (refused.exit_code, "dev, prod" in refused.output) == (1, True)
