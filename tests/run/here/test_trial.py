"""What `stagehold try` computes is what a run makes then, and nothing is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.small_project import FILES, SmallProject, values_of

from stagehold.errors import InvalidArgument, StageFailed
from stagehold.run.here.trial import StageTrial, try_stage
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.spark
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def odd(ctx, source):
    return source.where("number % 2 = 1")

@stage
def counted(ctx, odd):
    return odd.groupBy((F.col("number") % 10).alias("digit")).agg(F.count("*").alias("number"))

@stage
def most(ctx, counted, odd):
    top = odd.agg(F.max("number")).first()[0]
    return counted.withColumn("top", F.lit(top) + F.lit(ctx.params["more"]))

@stage
def broken(ctx, odd):
    return odd.withColumn("number", F.raise_error(F.lit("no")).cast("int"))
"""
STAGES = {
    "odd": {"source": {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}, "gate": "few"},
    "counted": {"inputs": {"odd": {"exchange": "keyed", "key": "number"}}, "partitions": 1, "key": "digit"},
    "most": {"inputs": {"counted": "gather", "odd": "gather"}},
    "broken": {"inputs": {"odd": "forward"}},
}
SUITE = """
suite: few
expectations:
  - {type: expect_column_values_to_be_between, column: number, max_value: 60}
"""


@pytest.fixture
def project(tmp_path: Path, spark_remote: str) -> SmallProject:
    folder = tmp_path / "trials"
    folder.mkdir()
    (folder / "few.yaml").write_text(SUITE)
    return SmallProject.make(folder, spark_remote, JOBS)


def tried(project: SmallProject, stage: str, partition: int = 0, most: int = 100) -> StageTrial:
    pipeline = project.pipeline("tried", STAGES, params={"more": 1})
    return try_stage(RunRequest(pipeline, "try", "i", {}, None), stage, partition, project.settings, print, most=most)


def files(project: SmallProject) -> list[str]:
    return sorted(str(path) for path in Path(project.settings.lake_uri).rglob("*") if path.is_file())


def test_what_is_not_there_is_computed_on_the_way_and_nothing_is_left(project):
    before = files(project)
    trial = tried(project, "most")
    assert trial.along == ("odd", "counted")
    assert trial.rows == [
        {"digit": digit, "number": 10, "top": 100} for digit in sorted(row["digit"] for row in trial.rows)
    ]
    assert files(project) == before
    pipeline = project.pipeline("tried", STAGES)
    assert project.records(pipeline, "i") == {}
    with project.ledger() as ledger:
        assert ledger.runs.newest_of_intervals("tried") == ()


def test_outputs_that_are_there_are_read_and_rows_are_those_of_the_partition(project):
    (Path(project.settings.suites) / "few.yaml").write_text(SUITE.replace("60", "600"))
    pipeline = project.pipeline("tried", {name: STAGES[name] for name in ("odd", "counted")})
    found = project.run(pipeline, "first")
    trial = tried(project, "counted")
    assert trial.along == ()
    assert sorted(row["number"] for row in trial.rows) == values_of(found["counted"][0], "number")
    trial = tried(project, "odd", 2, most=3)
    assert (len(trial.rows), trial.count, trial.columns) == (3, len(values_of(found["odd"][2], "number")), ("number",))


def test_its_gate_judges_it_by_itself(project):
    assert [tried(project, "odd", partition).refused for partition in range(FILES)] == [False, False, True, True]
    (verdict,) = tried(project, "odd", 3).verdicts
    assert (verdict.partition, verdict.passed) == (3, False)


def test_what_a_run_would_raise_is_raised(project):
    with pytest.raises(StageFailed, match="no"):
        tried(project, "broken")
    with pytest.raises(InvalidArgument, match="0 to 3, those of odd"):
        tried(project, "odd", FILES)
