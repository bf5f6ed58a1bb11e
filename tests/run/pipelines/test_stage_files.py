"""Files that a stage declares are found by its function and by UDFs in workers, and an edit of one makes it stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.run.small_project import FILES, INTERVAL, NUMBERS, ROWS, SmallProject, values_of

from stagehold.errors import ReadMissing, UnknownName
from stagehold.model.context import StageContext
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.spark.session import project_modules

pytestmark = pytest.mark.spark

JOBS = """
import os
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def called(ctx, numbers):
    with open(ctx.file("rates.csv")) as file:
        return numbers.select((F.col("number") * int(file.read())).alias("number"))

@stage
def in_a_udf(ctx, numbers):
    rates = ctx.file("side/rates.csv")

    @F.udf("long")
    def rated(number):
        from pyspark import SparkFiles
        path = os.fspath(rates)
        if not path.startswith(SparkFiles.getRootDirectory()):
            raise RuntimeError(path + " is not what the workers were sent")
        with open(path) as file:
            return number * int(file.read())

    return numbers.select(rated("number").alias("number"))

@stage
def by_context(ctx, numbers):
    @F.udf("long")
    def rated(number):
        with open(ctx.file("rates.csv")) as file:
            return number * int(file.read()) + 0 * ctx.params["least"]

    return numbers.select(rated("number").alias("number"))

@stage
def asks_for_another(ctx, numbers):
    return numbers.where(str(ctx.file("rate.csv")))
"""
STAGES = ("called", "in_a_udf", "by_context")


@pytest.fixture
def project(tmp_path, spark_remote) -> SmallProject:
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    write(project, 3)
    return project


def write(project: SmallProject, rate: int) -> None:
    file = Path(project.settings.project, "side", "rates.csv")
    file.parent.mkdir(exist_ok=True)
    file.write_text(str(rate))


def made(project: SmallProject, stage: str) -> Any:
    declared = {"inputs": {"numbers": "forward"}, "files": "side/rates.csv", "params": {"least": 1}}
    return project.pipeline("filed", {"numbers": {"source": NUMBERS}, stage: declared}, reads="strict")


def numbers(project: SmallProject, stage: str) -> list[int]:
    records = project.records(made(project, stage), INTERVAL)[stage]
    return sorted(value for record in records for value in values_of(record, "number"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_file_is_found_where_its_function_runs_and_an_edit_of_it_is_the_reason_to_run_again(project, stage):
    pipeline = made(project, stage)
    project.run(pipeline, "first")
    assert numbers(project, stage) == [3 * number for number in range(FILES * ROWS)]
    write(project, 5)
    plan = current_plan(RunRequest(pipeline, "second", INTERVAL, {}), project.settings)
    assert {str(decision.reason) for decision in plan.decisions if decision.stage == stage} == {
        "reads: file side/rates.csv changed"
    }
    project.run(pipeline, "second")
    assert numbers(project, stage) == [5 * number for number in range(FILES * ROWS)]


def test_a_content_is_sent_once_to_a_session(spark, tmp_path):
    from stagehold.model.context import StageFile

    sent: list[tuple[str, ...]] = []

    class Counted:
        def addArtifacts(self, *paths: str, file: bool) -> None:
            sent.append(tuple(Path(path).name for path in paths))

    (tmp_path / "a.csv").write_text("1")
    session, file = Counted(), StageFile(str(tmp_path / "a.csv"), "0123-a.csv")
    for _ in range(3):
        project_modules.send_files(session, [file])
    assert sent == [("0123-a.csv",)]
    project_modules.send_files(Counted(), [file])
    assert len(sent) == 2, "another session has workers of its own"


def test_a_file_that_is_not_there_is_refused_with_its_line_before_anything_runs(project):
    Path(project.settings.project, "side", "rates.csv").unlink()
    with pytest.raises(ReadMissing) as missing:
        project.run(made(project, "called"), "first")
    assert "stages.called.files" in str(missing.value)
    assert "side/rates.csv" in str(missing.value)


def test_a_file_that_is_not_declared_is_an_unknown_name_with_those_that_are():
    context = StageContext("p", "s", "i", None, (0,), 1)
    with pytest.raises(UnknownName, match="file of the stage"):
        context.file("rates.csv")


def test_a_function_that_asks_for_another_name_is_told_those_that_there_are(project):
    with pytest.raises(Exception, match=r"rate\.csv.*side/rates\.csv|side/rates\.csv"):
        project.run(made(project, "asks_for_another"), "first")
