"""A project at Python's prompt: the same as commands say and do, as values that show themselves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.run.small_project import FILES, SmallProject

import stagehold
from stagehold.errors import BackfillRefused, GateBlocked, InvalidArgument, InvalidParameter, StageFailed, UnknownName
from stagehold.notebook.notebook_project import NotebookProject

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def odd(ctx, source):
    return source.where("number % 2 = 1")

@stage
def totals(ctx, odd):
    return odd.withColumn("number", F.col("number") * ctx.params["times"])
"""
STAGES: dict[str, Any] = {
    "odd": {"source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}, "gate": "few"},
    "totals": {"inputs": {"odd": "forward"}},
}
SUITE = "suite: few\nexpectations:\n  - {type: expect_column_values_to_be_between, column: number, max_value: 60}\n"
DAY = "2026-11-20"


@pytest.fixture
def made(tmp_path: Path, spark_remote: str, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    folder = tmp_path / "looked_at"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, JOBS)
    for name, value in made.settings.environment.items():
        monkeypatch.setenv(name, value)
    stages = {name: {"job": f"looked_at:{name}", **fields} for name, fields in STAGES.items()}
    declared = {"pipeline": "numbers", "schedule": "@daily", "params": {"times": 1}, "stages": stages}
    (folder / "include" / "pipelines").mkdir(parents=True)
    (folder / "include" / "suites").mkdir()
    (folder / "include" / "pipelines" / "numbers.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    (folder / "include" / "suites" / "few.yaml").write_text(SUITE)
    return made


@pytest.fixture
def project(made: SmallProject) -> Iterator[NotebookProject]:
    with stagehold.open(made.settings.project) as project:
        yield project


def column(frame: Any) -> list[int]:
    return sorted(row["number"] for row in frame.collect())


@pytest.mark.spark
def test_what_a_stage_is_given_and_makes_is_there_before_anything_was_run(project):
    odd = project["numbers"].stage("odd")
    given = odd.inputs(DAY, partition=1)
    assert column(given["source"]) == list(range(25, 50))
    assert column(odd.inputs(DAY)["source"]) == list(range(FILES * 25))
    made = project["numbers"].stage("totals").call(DAY, 1, params={"times": 2})
    assert column(made) == [2 * number for number in range(25, 50) if number % 2]
    assert "<table" in given._repr_html_()
    assert "<td>25</td>" in given._repr_html_()
    assert "source\n" in repr(given)
    assert "  25\n" in repr(given)
    assert not project["numbers"].status().rows
    with pytest.raises(InvalidArgument, match="0 to 3, those of odd"):
        odd.call(DAY, FILES)


@pytest.mark.spark
def test_a_run_fails_is_told_resumed_and_backfilled_as_by_commands(project, made, capsys):
    numbers, code = project["numbers"], Path(made.settings.project, "looked_at.py")
    assert [row[1] for row in numbers.plan(DAY).rows] == ["run", "run"]
    with pytest.raises(GateBlocked, match="blocked 2 partition"):
        numbers.run(DAY, {"times": 3})
    assert "run numbers/notebook__" in capsys.readouterr().out
    assert [row[:2] for row in numbers.refused(DAY).rows] == [["odd", "2"], ["odd", "3"]]
    rows = numbers.refused(stage="odd", limit=3)
    assert len(rows.rows) == 3
    assert "expect_column_values_to_be_between" in rows._repr_html_()
    Path(made.settings.project, "include", "suites", "few.yaml").write_text(SUITE.replace("60", "600"))
    code.write_text(JOBS.replace('F.col("number") *', 'F.raise_error(F.lit("no")).cast("int") *'))
    with pytest.raises(StageFailed, match="no"):
        numbers.run("2026-11-21", run_id="second")
    assert project.status().rows[0][2] == "failed"
    assert numbers.status().rows[0][-1] == "second"
    code.write_text(JOBS)
    resumed = numbers.resume()
    assert resumed.columns[2:4] == ("reused", "computed")
    assert (resumed.rows[0][0], resumed.rows[0][2:4]) == ("second", (str(FILES), str(FILES)))
    planned = numbers.backfill(DAY, "2026-11-21", dry_run=True)
    assert len(planned.rows) == 2
    ended = numbers.backfill(DAY, "2026-11-21")
    assert [row[:2] for row in ended.rows] == [(DAY, "finished")]  # the other day needs nothing
    assert [row[1] for row in numbers.plan(DAY).rows] == ["reuse", "reuse"]


@pytest.mark.spark
def test_projects_with_modules_of_one_name_have_their_own_code(project, made, tmp_path):
    other = tmp_path / "other" / "looked_at"
    shutil.copytree(Path(made.settings.project, "include"), other / "include")
    (other / "looked_at.py").write_text(JOBS.replace('ctx.params["times"]', "100"))
    with stagehold.open(other) as second:
        for opened, times in ((project, 1), (second, 100), (project, 1)):
            assert max(column(opened["numbers"].stage("totals").call(DAY))) == 23 * times


def test_names_that_are_not_there_are_told_with_those_that_are(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    assert "There is no pipeline in" in repr(stagehold.open(tmp_path))
    (tmp_path / "jobs.py").write_text("from stagehold import stage\n@stage\ndef a(ctx, source): return source\n")
    (folder / "one.yaml").write_text(
        'pipeline: one\nparams: {n: 1}\nstages: {a: {job: "jobs:a", source: {kind: parquet, path: x, splits: 1}}}\n'
    )
    (folder / "two.yaml").write_text("pipeline: two\n")
    project = stagehold.open(tmp_path)
    assert list(project) == ["one"]
    assert "<td>one</td>" in project._repr_html_()
    assert "two.yaml" in repr(project)
    with pytest.raises(UnknownName, match="tow"):
        project["tow"]
    with pytest.raises(UnknownName, match="stage of one"):
        project["one"].stage("b")
    with pytest.raises(InvalidParameter):
        project["one"].plan(params={"m": 1})
    with pytest.raises((BackfillRefused, InvalidArgument)):
        project["one"].backfill("2026-11-20")


def test_to_open_a_project_imports_neither_spark_nor_airflow(tmp_path):
    code = (
        f"import stagehold; repr(stagehold.open({str(tmp_path)!r}))\n"
        "import sys; assert not {'pyspark', 'airflow', 'great_expectations', 'deltalake'} & set(sys.modules)\n"
        "assert 'open' not in stagehold.__all__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
