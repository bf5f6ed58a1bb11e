"""An attempt runs and records one version of the project's code, whatever is deployed or put back while it works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.run.small_project import FILES, ROWS, SmallProject, values_of

from stagehold.lake.commit.staging import WaveFiles
from stagehold.run.stage import spark_engine
from stagehold.run.stage.runner import StageRunner
from stagehold.run.stage.spark_engine import SparkStageSession
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.spark

JOBS = """
import pandas as pd
from pyspark.sql import functions as F

from stagehold import stage


@stage
def rows(ctx, source):
    return source


@stage
def passed(ctx, rows):
    return rows


@stage
def straight(ctx, rows):
    return rows.selectExpr("2 * number AS number")


@stage
def imported_late(ctx, rows):
    from {helper} import times

    return rows.selectExpr(f"{{times(1)}} * number AS number")


@stage
def of_file(ctx, rows):
    with open(ctx.file("{times}")) as told:
        return rows.selectExpr(told.read())


@stage
def by_workers(ctx, rows):
    from {helper} import times

    @F.pandas_udf("long")
    def many(numbers: pd.Series) -> pd.Series:
        return times(numbers)

    return rows.select(many("number").alias("number"))
"""
TIMES = "times.txt"
HELPER = "def times(number):\n    return 2 * number\n"
SQL = "select 2 * number as number from rows"
STAGES = {
    "rows": {"source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}},
    "passed": {"inputs": {"rows": "forward"}},
}
READERS = {"straight": {}, "imported_late": {}, "by_workers": {}, "of_sql": {"sql": "sql/late.sql"}}
OF_FILE = {"files": ["times.txt"]}


class Deployment:
    """What is in the project's files: code that doubles numbers, until another one is deployed."""

    def __init__(self, folder: Path, spark_remote: str, reader: str) -> None:
        helper = f"{folder.name}_helper"
        self.made = SmallProject.make(folder, spark_remote, JOBS.format(helper=helper, times=TIMES))
        self.texts = {
            folder / f"{folder.name}.py": JOBS.format(helper=helper, times=TIMES),
            folder / f"{helper}.py": HELPER,
            folder / "sql" / "late.sql": SQL,
            folder / TIMES: "2 * number AS number",
        }
        (folder / "sql").mkdir()
        self.deploy(2)
        declared: dict[str, Any] = {"inputs": {"rows": "forward"}, **READERS.get(reader, OF_FILE)}
        rows = {**STAGES["rows"], "output": {"type": "pipelined_bounded"}}
        self.pipeline: Pipeline = self.made.pipeline("edited", {**STAGES, "rows": rows, reader: declared})
        self.reader = reader

    def deploy(self, times: int) -> None:
        for file, text in self.texts.items():
            file.write_text(text.replace("2 *", f"{times} *"))

    def numbers(self, run_id: str) -> tuple[list[int], set[str]]:
        """What is recorded behind a run, and by which runs."""
        records = self.made.run(self.pipeline, run_id)[self.reader]
        return sorted(value for each in records for value in values_of(each, "number")), {
            each.run_id for each in records
        }


def every(times: int) -> list[int]:
    return [times * number for number in range(FILES * ROWS)]


def before(function: Callable[..., Any], do: Callable[[], None]) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        do()
        return function(*arguments)

    return called


def behind(function: Callable[..., Any], do: Callable[[], None]) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        found = function(*arguments)
        do()
        return found

    return called


@pytest.fixture(params=READERS)
def deployment(tmp_path: Path, spark_remote: str, request: pytest.FixtureRequest) -> Deployment:
    folder = tmp_path / f"edited_{request.param}"
    folder.mkdir()
    return Deployment(folder, spark_remote, request.param)


def test_what_is_deployed_while_the_session_opens_counts_from_the_next_run(deployment, monkeypatch):
    deploying = before(spark_engine.send_project, lambda: deployment.deploy(3))
    with monkeypatch.context() as during:
        during.setattr(spark_engine, "send_project", deploying)
        assert deployment.numbers("one") == (every(2), {"one"})
    deployment.deploy(2)
    assert deployment.numbers("two") == (every(2), {"one"})
    deployment.deploy(3)
    assert deployment.numbers("three") == (every(3), {"three"})


def test_what_is_deployed_between_stages_of_a_region_counts_from_the_next_run(deployment, monkeypatch):
    with monkeypatch.context() as during:
        during.setattr(StageRunner, "run", behind(StageRunner.run, lambda: deployment.deploy(3)))
        assert deployment.numbers("one") == (every(2), {"one"})
    assert deployment.numbers("two") == (every(3), {"two"})


def test_a_file_that_changes_while_a_function_may_read_it_is_read_again(tmp_path, spark_remote, monkeypatch, capsys):
    deployment = Deployment(tmp_path, spark_remote, "of_file")
    written = SparkStageSession.write

    def deploying(session: SparkStageSession, frame: Any, files: WaveFiles, *more: Any) -> Any:
        if files.location.stage == deployment.reader:
            deployment.deploy(3)
        return written(session, frame, files, *more)

    with monkeypatch.context() as during:
        during.setattr(SparkStageSession, "write", deploying)
        assert deployment.numbers("one") == (every(3), {"one"})
    assert "restart" in capsys.readouterr().out
    deployment.deploy(2)
    assert deployment.numbers("two") == (every(2), {"two"})


def test_a_stage_reads_the_file_that_the_one_before_it_has_written(tmp_path, spark_remote, monkeypatch, capsys):
    deployment = Deployment(tmp_path, spark_remote, "of_file")
    with monkeypatch.context() as during:
        during.setattr(StageRunner, "run", behind(StageRunner.run, lambda: deployment.deploy(3)))
        assert deployment.numbers("one") == (every(3), {"one"})
    assert "restart" not in capsys.readouterr().out
    assert deployment.numbers("two") == (every(3), {"one"})
