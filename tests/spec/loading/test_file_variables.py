"""What `${vars.NAME}` and `${env.NAME}` stand for, and what is refused where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.spec.samples import Project, edited

from stagehold.errors import InvalidSpec
from stagehold.gates.suite_files import suite_of
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline, find_pipeline

VARS = "failover: full => vars: {folder: raw, n: 16, list: [1, 2], day: '${env.DAY}'}\\nenv: {DAY: monday, ZONE: null}"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def loaded(project, *edits):
    return project.load(edited(VARS, *edits))


def test_a_value_keeps_its_type_alone_and_becomes_text_within_a_text(project):
    found = loaded(
        project,
        "raw/orders/*.parquet\", splits: 16 => ${vars.folder}/o${vars.n}\", splits: '${vars.n}'",
        "limits: [1, 2] => limits: '${vars.list}', day: 'on ${vars.day}', zone: '${env.DAY}'",
    )
    orders = found.stage("orders")
    assert (orders.source.path, orders.source.splits) == ("${lake}/raw/o16", 16)
    assert orders.params == {"limits": [1, 2], "day": "on monday", "zone": "monday"}
    assert found.variables == {
        "env.DAY": "monday",
        "vars.folder": "raw",
        "vars.n": 16,
        "vars.list": [1, 2],
        "vars.day": "monday",
    }


def test_another_value_changes_only_the_stages_that_it_reaches(project):
    edit = "limits: [1, 2] => day: '${vars.day}'"
    before, after = loaded(project, edit), project.load(edited(VARS.replace("monday", "sunday"), edit))
    assert [one.name for one, other in zip(before.stages, after.stages, strict=True) if one != other] == ["orders"]


def test_the_environment_counts_more_than_a_default(project, monkeypatch):
    monkeypatch.setenv("DAY", "sunday")
    assert loaded(project, "limits: [1, 2] => day: '${env.DAY}'").stage("orders").params == {"day": "sunday"}


OF_VARS = "a variable of `vars`"
PARAM = "stages.orders.params.a"
NAMES = "folder, n, list, day (did you mean folder?)"
UNSET = "a variable that the environment has, or a default: `env: {ZONE: VALUE}`"
REFUSED = [
    ("limits: [1, 2] => a: '${vars.foldr}'", PARAM, f"${{vars.foldr}} | {OF_VARS}, here or in stagehold.yaml: {NAMES}"),
    ("limits: [1, 2] => a: [1, 'x${vars.}']", f"{PARAM}.1", f"${{vars.}} | {OF_VARS}"),
    ("limits: [1, 2] => a: '${env.HOME}'", PARAM, "${env.HOME} | a variable that `env` of the pipeline declares: DAY"),
    ("limits: [1, 2] => a: '${env.ZONE}'", PARAM, f"${{env.ZONE}}, which is not set | {UNSET}"),
    ("limits: [1, 2] => a: 'x${vars.list}'", PARAM, "${vars.list}, which is [1, 2] | text, a number"),
    ("wave: 30s => wave: ${vars.nobody}", "wave", f"${{vars.nobody}} | {OF_VARS}"),
    ("splits: 16 => splits: '${vars.folder}'", "stages.orders.source.splits", "'raw' | a whole number"),
    ("pipeline: revenue => pipeline: ${vars.folder}", "pipeline", "${vars.folder} | no variable in a name"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "field", "text"), REFUSED)
def test_what_stands_for_nothing_is_refused_where_it_is_written(project, edit, field, text):
    found = project.problems(edited(VARS, edit))
    assert {name for _, name, _ in found} == {field}
    assert found[0][2].startswith(text)
    lines = edited(VARS, edit).splitlines()
    assert edit.split(" => ")[1].split("$")[0].strip("'[") in lines[found[0][0] - 1]


def test_a_value_that_has_itself_in_it_is_refused_and_not_put_in_for_ever(project):
    found = project.problems(edited("failover: full => vars: {a: '${vars.a}', b: '${vars.a}'}"))
    assert [(line, field) for line, field, _ in found] == [(10, "vars.a"), (10, "vars.b")]


def written(tmp_path: Path, own: str = "") -> Settings:
    project = Project(tmp_path)
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    text = edited("limits: [1, 2] => country: '${vars.country}'", f"failover: full => {own or 'failover: full'}")
    file = folder / "revenue.yaml"
    file.write_text(text)
    for path in (file, *tmp_path.rglob("*.py")):
        os.utime(path, (1, 1))  # a file that is settled is kept in memory
    return Settings(project=str(tmp_path), pipelines=str(folder), suites=str(project.suites))


def country(settings: Settings) -> object:
    return find_pipeline("revenue", settings).stage("orders").params["country"]


def test_the_projects_values_hold_for_all_pipelines_and_a_change_of_them_is_seen(tmp_path):
    settings = written(tmp_path)
    file = tmp_path / "stagehold.yaml"
    file.write_text("vars: {country: de}\n")
    os.utime(file, (1, 1))
    assert country(settings) == "de"
    file.write_text("vars: {country: fr}\n")
    assert country(settings) == "fr"
    file.unlink()
    with pytest.raises(InvalidSpec, match=r"revenue.yaml:\d+: stages.orders.params.country: got \$\{vars.country\}"):
        country(settings)


def test_a_pipelines_own_value_counts_more_than_its_projects(tmp_path):
    (tmp_path / "stagehold.yaml").write_text("vars: {country: de}\n")
    assert country(written(tmp_path, "vars: {country: at}")) == "at"


def test_another_environment_is_seen_by_who_has_read_the_file_before(tmp_path, monkeypatch):
    settings = written(tmp_path, "vars: {country: '${env.COUNTRY}'}\\nenv: {COUNTRY: de}")
    assert country(settings) == "de"
    monkeypatch.setenv("COUNTRY", "ch")
    assert country(settings) == "ch"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nvarz: {}\n", r"stagehold.yaml:2: varz: got 'varz'; allowed: .*did you mean vars"),
        ("vars: [a]\n", r"stagehold.yaml:1: vars: got \['a'\]; allowed: a mapping of names to values"),
        ("- a\n", r"stagehold.yaml:1: file: got list; allowed: a mapping of fields"),
        ("vars: {a: 1\n", r"stagehold.yaml:2: file: got .*; allowed: YAML in UTF-8"),
    ],
)
def test_a_projects_file_is_refused_with_its_line(tmp_path, text, said):
    settings = written(tmp_path)
    (tmp_path / "stagehold.yaml").write_text(text)
    with pytest.raises(InvalidSpec, match=said):
        find_pipeline("revenue", settings)


def test_a_pipeline_made_in_python_has_variables_too(tmp_path):
    Project(tmp_path)
    source = {"kind": "parquet", "path": "${lake}/${vars.where}", "splits": 2}
    stages = {"orders": {"job": "work.jobs:orders", "source": source}}
    said = {"pipeline": "revenue", "vars": {"where": "raw"}, "stages": stages}
    found = build_pipeline(said, project=tmp_path, suites=tmp_path)
    assert found.stage("orders").source.path == "${lake}/raw"


SUITE = "suite: joined\nexpectations:\n  - {type: expect_table_row_count_to_be_between, min_value: '${vars.n}'}\n"


def test_a_suite_has_the_values_of_the_pipeline_that_it_judges(project):
    path = project.suites / "joined.yaml"
    path.write_text(SUITE)
    settings = Settings(project=str(project.root), suites=str(project.suites))
    few, many = loaded(project), project.load(edited(VARS.replace("n: 16", "n: 17")))
    assert [each.variables["vars.n"] for each in (few, many)] == [16, 17]
    assert "vars.folder" not in few.variables
    suites = [suite_of(each, "joined", settings) for each in (few, many)]
    assert [str(suite.expectations[0]) for suite in suites] == [
        f"expect_table_row_count_to_be_between(min_value={number})" for number in (16, 17)
    ]
    assert suites[0].fingerprint != suites[1].fingerprint  # so that another value judges again


def test_an_unknown_variable_of_a_suite_is_told_with_its_line(project):
    (project.suites / "joined.yaml").write_text(SUITE.replace("vars.n}", "vars.least}"))
    settings = Settings(project=str(project.root), suites=str(project.suites))
    with pytest.raises(InvalidSpec, match=r"joined.yaml:3: expectations.0.min_value: got .*; .*folder, n"):
        suite_of(loaded(project), "joined", settings)
