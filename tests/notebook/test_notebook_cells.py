"""A notebook of a project, run by Jupyter's own client: what its cells show, and what they say when a run fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from tests.run.small_project import FILES, SmallProject

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOBS = """
from stagehold import stage

@stage
def odd(ctx, source):
    return source.where("number % 2 = 1")
"""
SUITE = (
    "suite: few\nexpectations:\n  - {{type: expect_column_values_to_be_between, column: number, max_value: {most}}}\n"
)
CELLS = (
    "import stagehold\nproject = stagehold.open('.')\nproject",
    "odd = project['numbers'].stage('odd')\nodd.inputs('2026-11-20', partition=1)",
    "project['numbers'].run('2026-11-20')",
    "project['numbers'].refused('2026-11-20')",
    "import pathlib\nsuite = pathlib.Path('include/suites/few.yaml')\n"
    "suite.write_text(suite.read_text().replace('60', '600'))",
    "project['numbers'].resume()",
    "project['numbers'].backfill('2026-11-20', '2026-11-21')",
    "project['numbers'].plan('2026-11-21')",
    "odd.call('2026-11-20', 0).count()",
)


@pytest.fixture
def folder(tmp_path: Path, spark_remote: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = SmallProject.make(tmp_path, spark_remote, JOBS)
    for name, value in made.settings.environment.items():
        monkeypatch.setenv(name, value)
    source = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}
    stages = {"odd": {"job": f"{tmp_path.name}:odd", "source": source, "gate": "few"}}
    for place, text in {
        "pipelines/numbers.yaml": yaml.safe_dump({"pipeline": "numbers", "schedule": "@daily", "stages": stages}),
        "suites/few.yaml": SUITE.format(most=60),
    }.items():
        Path(tmp_path, "include", place).parent.mkdir(parents=True)
        Path(tmp_path, "include", place).write_text(text)
    return tmp_path


def html_of(cell: Any) -> str:
    return next((output.data["text/html"] for output in cell.outputs if output.output_type == "execute_result"), "")


def said_by(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def test_cells_show_tables_progress_and_errors_as_a_person_reads_them(folder):
    notebook = new_notebook(cells=[new_code_cell(text) for text in CELLS])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True, resources=resources).execute()
    opened, given, failed, refused, _, resumed, ended, planned, called = notebook.cells
    assert "<td>numbers</td>" in html_of(opened)
    assert "<td>25</td>" in html_of(given)
    (error,) = (output for output in failed.outputs if output.output_type == "error")
    assert (error.ename, "blocked 2 partition" in error.evalue) == ("GateBlocked", True)
    assert "run numbers/notebook__" in said_by(failed)
    assert "expect_column_values_to_be_between" in html_of(refused)
    assert f"<td>{FILES}</td>" in html_of(resumed)
    assert "odd" in said_by(resumed)
    assert "<td>2026-11-21</td><td>finished</td>" in html_of(ended).replace("\n", "")
    assert "<td>reuse</td>" in html_of(planned)
    assert called.outputs[-1].data["text/plain"] == "12"
