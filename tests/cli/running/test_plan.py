"""`stagehold plan` on a project of its own; nothing of it needs Spark, and what a run would refuse it refuses, too."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path

import pytest
from pyspark.sql.types import DateType, IntegerType, LongType, StructField, StructType
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors.source_errors import SourceError
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.location import table_location
from stagehold.lake.tables import ensure_table
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

SPEC = """\
pipeline: sales
params: {limit: 5}
stages:
  orders:
    job: shop.sales:orders
    source: {kind: json, path: "${lake}/raw", splits: 1000, schema: "id int"}
    output: {type: blocking}
  flow: {job: shop.sales:flow, inputs: {orders: forward}, output: {type: pipelined}}
  kept: {job: shop.sales:kept, inputs: {flow: forward}, output: {type: blocking}, GATE}
"""
CODE = """\
from stagehold import stage
from shop import helpers

@stage
def orders(ctx, source): return helpers.clean(source)
@stage
def flow(ctx, orders): return orders
@stage
def kept(ctx, flow): return flow
"""
HELPERS = "def clean(frame):\n    return frame\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, value in {"HOME": "home", "PIPELINES": "pipelines", "SUITES": "suites", "PROJECT": "project"}.items():
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(tmp_path / value))
    write(tmp_path, "pipelines/sales.yaml", SPEC.replace(", GATE", ""))
    write(tmp_path, "project/shop/sales.py", CODE)
    write(tmp_path, "project/shop/helpers.py", HELPERS)
    write(tmp_path, "home/lake/raw/a.json", '{"id": 1}')
    (tmp_path / "suites").mkdir()
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def plan(*options: str, code: int = 0):
    result = CliRunner().invoke(app, ["plan", "sales", "--interval", "2024-01-01", *options])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.usefixtures("project")
def test_a_thousand_partitions_are_a_line_and_what_is_not_stored_is_counted_apart():
    lines = plan().stdout.splitlines()
    assert [line.split()[:4] for line in lines if " of 1000" in line] == [
        [name, "run", "1000", "of"] for name in ("orders", "flow", "kept")
    ]
    assert lines[-1] == "0 partitions reused, 2000 run (1000 more computed along, not stored), 0 blocked"
    document = json.loads(plan("--json").stdout)
    assert (document["run"], document["along"], len(document["decisions"])) == (2000, 1000, 3000)
    assert document["decisions"][1700]["reason"] == "reads orders[700], which runs again"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "project/shop/helpers.py",
            "def clean(frame:\n",
            "shop/helpers.py:1: Python cannot read it: '(' was never closed (orders, ",
        ),
        (
            "project/shop/helpers.py",
            f"import no_such\n{HELPERS}",
            "shop/helpers.py:1: imports no_such, which is not installed",
        ),
        (
            "project/shop/sales.py",
            CODE.replace("@stage\ndef kept", "def kept"),
            "kept is no stage function; put @stage on it (kept)",
        ),
        ("project/shop/sales.py", CODE.replace("kept(ctx, flow)", "kept(ctx, flows)"), "allowed: def kept(ctx, flow)"),
    ],
)
def test_code_that_a_run_could_not_import_is_refused(project, file, text, said):
    write(project, file, text)
    assert said in plan(code=1).stderr


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("options", "said"),
    [(("--param", "limit=many"), "a whole number"), (("--interval", "2024-13-45"), "'2024-13-45' is no date")],
)
def test_a_parameter_of_another_type_and_an_impossible_interval_are_refused(options, said):
    assert said in plan(*options, code=1).stderr


def test_an_expectation_of_a_table_is_refused(project):
    write(project, "pipelines/sales.yaml", SPEC.replace("GATE", "gate: whole"))
    write(
        project,
        "suites/whole.yaml",
        "suite: whole\nexpectations:\n  - {type: expect_table_row_count_to_equl, value: 4}\n",
    )
    assert "whole.yaml:3: expectations.0.type: got 'expect_table_row_count_to_equl'" in plan(code=1).stderr


def test_a_run_is_refused_before_anything_starts(project):
    write(project, "project/shop/helpers.py", "def clean(frame:\n")
    result = CliRunner().invoke(app, ["run", "sales", "--interval", "2024-01-01"])
    assert (result.exit_code, "Nothing was run" in result.stderr) == (1, True)


def test_without_source_files_there_is_no_run_to_resume(project):
    (project / "home/lake/raw/a.json").unlink()
    said = plan(code=1).stderr
    assert "no files: nothing matches" in said
    assert "resume" not in said
    assert "then run the pipeline again" in said


@pytest.mark.parametrize("error", SourceError.__subclasses__())
def test_no_error_of_a_source_advises_to_resume_since_a_plan_may_find_it(error):
    facts = list(signature(error).parameters)
    assert "stagehold resume" not in str(error(**dict.fromkeys(facts, "x")))


def test_a_declared_column_that_breaks_readers_of_the_table_is_told(project):
    output = "output: {type: blocking_persistent, table: marts.kept, columns: {id: {type: bigint, null: false}, DAY}}"
    write(
        project,
        "pipelines/sales.yaml",
        SPEC.replace("output: {type: blocking}, GATE", output.replace("DAY", "day: date")),
    )
    assert "columns of published tables" not in plan().stdout
    (kept,) = (stage for stage in find_pipeline("sales", load_settings()).stages if stage.name == "kept")
    frame = StructType(
        [StructField("id", LongType()), StructField("day", DateType()), StructField("_partition", IntegerType())]
    )
    location = table_location(load_settings().lake_uri, "sales", kept, "2023-12-31")
    ensure_table(location, frame, Claim(1, "a"), kept.output)
    assert "columns of published tables" not in plan().stdout
    changed = output.replace("bigint, null: false", "bigint").replace("DAY", "month: int")
    write(project, "pipelines/sales.yaml", SPEC.replace("output: {type: blocking}, GATE", changed))
    lines = plan().stdout.partition("columns of published tables that change")[2].splitlines()
    told = {line.split()[1]: "yes" in line.split() for line in lines if "marts.kept" in line}
    assert told == {"day": True, "month": False, "id": True}
    document = json.loads(plan("--json").stdout)
    assert {each["column"]: each["breaks"] for each in document["columns"]} == told


def test_it_says_what_variables_stand_for(project):
    write(project, "project/stagehold.yaml", "vars: {most: 7}\n")
    spec = SPEC.replace(", GATE", "").replace("limit: 5", "limit: '${vars.most}', day: 'on ${env.WEEKDAY}'")
    write(project, "pipelines/sales.yaml", spec + "env: {WEEKDAY: monday}\n")
    assert "\nwith vars.most=7, env.WEEKDAY=monday\n" in plan().output
    assert json.loads(plan("--json").stdout)["variables"] == {"vars.most": 7, "env.WEEKDAY": "monday"}
