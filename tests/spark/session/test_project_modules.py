"""Python workers of a server that knows nothing of the project run the project's code,
as it is when the attempt begins.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from tests.run.small_project import NUMBERS, SmallProject
from tests.unseen_edits import edit_unseen

from stagehold.settings import PROJECT, Settings
from stagehold.spark.server.server import running_server
from stagehold.spark.session.project_modules import load_function

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F

import {helper}
from stagehold import StageContext, stage


@F.pandas_udf("string")
def named(numbers):
    return numbers.map({helper}.name)


def renamed(pdf):
    pdf["name"] = [{helper}.name(number) for number in pdf.number]
    return pdf


@stage
def names(ctx: StageContext, source):
    return source.select("number", named("number").alias("name"))


@stage
def groups(ctx: StageContext, names):
    return names.groupBy("number").applyInPandas(renamed, "number long, name string")
"""
STAGES = {
    "names": {"source": NUMBERS},
    "groups": {"inputs": {"names": {"exchange": "keyed", "key": "number"}}, "partitions": 2, "max_parallelism": 8},
}


@pytest.fixture
def project(tmp_path, spark_remote):
    folder = tmp_path / tmp_path.name.replace("-", "_")
    folder.mkdir()
    (folder / f"{folder.name}_helper.py").write_text('def name(number):\n    return f"number {number}"\n')
    return SmallProject.make(folder, spark_remote, JOBS.format(helper=f"{folder.name}_helper"))


def names_in(records) -> list[str]:
    rows = [pq.read_table(Path(record.table) / file.path) for record in records for file in record.files]
    return sorted(name for table in rows for name in table["name"].to_pylist())


def test_the_server_finds_no_project_by_itself(spark_settings: Settings, project):
    state = running_server(spark_settings)
    assert state is not None
    variables = dict(
        line.split("=", 1) for line in Path(f"/proc/{state.pid}/environ").read_text().split("\0") if "=" in line
    )
    paths = variables["PYTHONPATH"].split(os.pathsep)
    assert not {str(PROJECT / "include"), project.settings.project, spark_settings.project} & {*paths}


def test_workers_are_sent_the_projects_modules_and_changed_code_runs_in_the_next_attempt(project):
    pipeline = project.pipeline("names", STAGES)
    first = project.run(pipeline, "first")
    assert names_in(first["groups"]) == sorted(f"number {number}" for number in range(100))
    helper = Path(project.settings.project) / f"{Path(project.settings.project).name}_helper.py"
    helper.write_text('def name(number):\n    return f"no. {number}"\n')
    second = project.run(pipeline, "second")
    assert names_in(second["names"]) == names_in(second["groups"]) == sorted(f"no. {number}" for number in range(100))


def test_an_edit_that_no_time_tells_of_runs_in_the_next_attempt(project):
    pipeline = project.pipeline("names", STAGES)
    project.run(pipeline, "first")
    helper = Path(project.settings.project) / f"{Path(project.settings.project).name}_helper.py"
    edit_unseen(helper, "number {", "figure {")
    second = project.run(pipeline, "second")
    expected = sorted(f"figure {number}" for number in range(100))
    assert names_in(second["names"]) == names_in(second["groups"]) == expected


@pytest.fixture
def imports_meanwhile() -> Iterator[None]:
    """Something is imported whenever Python may let another thread do so, as the preloading of gates does."""
    names = (f"imported_meanwhile_{number}" for number in count())
    made: list[str] = []

    def import_one(phase: str, facts: object) -> None:
        made.append(next(names))
        sys.modules[made[-1]] = ModuleType(made[-1])

    before = gc.get_threshold()
    gc.callbacks.append(import_one)
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(import_one)
    for name in made:
        del sys.modules[name]
    assert made


@pytest.mark.usefixtures("imports_meanwhile")
def test_a_function_is_loaded_while_other_threads_import(tmp_path: Path):
    (tmp_path / f"{tmp_path.name}.py").write_text("def job(): ...\n")
    assert load_function(f"{tmp_path.name}:job", tmp_path).__name__ == "job"
