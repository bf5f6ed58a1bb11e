from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from stagehold.cli.main import app

JOBS = """\
from pathlib import Path
from stagehold import stage

@stage
def orders(ctx, source):
    return source

@stage
def rated(ctx, orders):
    rates = open("rates.csv").read()
    return orders

@stage
def beside(ctx, orders):
    return orders.where(Path(__file__).name)

@stage
def missing(ctx, orders):
    from no_such_package import helper
    return helper(orders)
"""
ORDERS = {"job": "work:orders", "source": {"kind": "parquet", "path": "x", "splits": 2}}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in {"HOME": "home", "PIPELINES": "pipelines", "PROJECT": ".", "SUITES": "suites"}.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(JOBS)
    return tmp_path


def write(name: str, *stages: str, **fields: object) -> None:
    readers = {stage: {"job": f"work:{stage}", "inputs": {"orders": "forward"}, **fields} for stage in stages}
    declared = {"pipeline": name, "stages": {"orders": ORDERS, **readers}}
    Path("pipelines", f"{name}.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))


def check(*words: str, code: int) -> list[str]:
    result = CliRunner().invoke(app, ["check", *words])
    assert result.exit_code == code, result.output
    return result.stdout.splitlines()


def test_what_is_right_says_nothing_and_ends_with_0():
    write("right")
    assert check(code=0) == []


def test_a_file_a_function_and_a_suite_that_cannot_be_used_are_told_with_their_lines():
    write("code", "missing")
    write("gate", "rated", gate="totals", reads={"files": ["rates.csv"]})
    Path("suites", "totals.yaml").write_text("suite: totals\nexpectations:\n  - type: expect_nothing\n")
    Path("pipelines", "wrong.yaml").write_text("pipeline: wrong\nstages:\n  orders: {job: work:order}\n")
    found = [line.split(": got")[0] for line in check(code=1)]
    assert "pipelines/wrong.yaml:3: error: stages.orders.job" in found
    assert "work.py:19: error: imports no_such_package, which is not installed" in found
    assert "suites/totals.yaml:3: error: expectations.0.type" in found


def test_a_target_that_nobody_has_chosen_is_checked_too():
    write("right")
    Path("stagehold.yaml").write_text("vars: {n: 1}\ntargets:\n  dev: {vars: {n: 2}}\n  qa: {colour: red}\n")
    (line,) = check(code=1)
    assert line.startswith("stagehold.yaml:4: error: targets.qa.colour: got 'colour'; allowed: home, ")


def test_what_is_worth_a_look_is_a_warning_and_no_failure():
    write("looked", "rated", "beside")
    rates, unknown = sorted(check(code=0))
    assert rates.startswith("work.py:10: warning: rated reads file rates.csv (work.py:10), which its `reads` does not")
    assert unknown.startswith("work.py:14: warning: stage beside is computed again each time, since its code cannot be")


def test_what_a_pipeline_forbids_is_an_error():
    write("strict", "rated", reads="strict")
    (told,) = check(code=1)
    assert told.startswith("work.py:10: error: rated reads file rates.csv")


def test_chosen_files_for_programs_and_for_github():
    write("right")
    write("strict", "rated", reads="strict")
    assert json.loads("\n".join(check("pipelines/right.yaml", "--json", code=0))) == {
        "files": 1,
        "failed": False,
        "problems": [],
    }
    (problem,) = json.loads("\n".join(check("--json", code=1)))["problems"]
    assert (problem["file"], problem["line"], problem["weight"]) == ("work.py", 10, "error")
    (command,) = check("--format", "github", code=1)
    assert command.startswith("::error file=work.py,line=10::rated reads file rates.csv")


def test_a_file_that_is_none_of_a_pipeline_is_refused_with_those_that_are():
    write("right")
    result = CliRunner().invoke(app, ["check", "work.py"])
    assert result.exit_code == 1
    assert "There is no file of a pipeline 'work.py'. Known: pipelines/right.yaml" in result.stderr


def test_the_folder_of_suites_is_listed_once_for_all_pipelines(monkeypatch):
    expectation = "expect_column_values_to_not_be_null, column: number"
    Path("suites", "few.yaml").write_text(f"suite: few\nexpectations:\n  - {{type: {expectation}}}\n")
    for number in range(5):
        write(f"p{number}", "rated", gate="few")
    listed, glob = [], Path.glob

    def counted(folder: Path, pattern: str) -> object:
        listed.append((folder.name, pattern))
        return glob(folder, pattern)

    monkeypatch.setattr(Path, "glob", counted)
    assert CliRunner().invoke(app, ["check"]).exit_code == 0
    assert [pattern for folder, pattern in listed if folder == "suites"] == ["*.yaml", "*.json"]
