"""A variable, a file and a table that a function reads: declared, a change of it runs the stage and what follows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject, values_of

from stagehold.errors import UndeclaredRead
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.spec.pipeline import Pipeline

pytestmark = pytest.mark.spark

JOBS = """
import json
import os
from pathlib import Path
from pyspark.sql import functions as F
from stagehold import stage

FOLDER = {folder!r}

@stage
def numbers(ctx, source):
    return source

@stage
def by_variable(ctx, numbers):
    return numbers.select("number", F.lit(int(os.environ.get("STAGEHOLD_TEST_RATE", "1"))).alias("rate"))

@stage
def by_file(ctx, numbers):
    return numbers.select("number", F.lit(json.loads(Path(FOLDER, "side.json").read_text())).alias("rate"))

@stage
def by_table(ctx, numbers):
    rates = numbers.sparkSession.read.format("delta").load(FOLDER + "/lake/marts/rates")
    return numbers.crossJoin(rates.agg(F.max("rate").alias("rate")))

@stage
def summed(ctx, numbers, by_variable=None, by_file=None, by_table=None):
    (rated,) = (frame for frame in (by_variable, by_file, by_table) if frame is not None)
    return rated.agg(F.sum("rate").alias("total"))
"""


RELATIVE = """
from pathlib import Path
from pyspark.sql import functions as F
from stagehold import stage

@stage
def rated(ctx, source):
    spark = source.sparkSession
    file = spark.read.schema("rate int").csv("config/rate.csv")
    glob = spark.read.format("json").schema("rate int").load("config/*.json")
    number = int(Path("config/number.txt").read_text())
    both = source.crossJoin(file).crossJoin(glob.select(F.col("rate").alias("other")))
    return both.select("number", (F.col("rate") + F.col("other") + number).alias("rate"))
"""


def test_relative_paths_begin_at_the_project_wherever_the_command_is_called(tmp_path, spark_remote, monkeypatch):
    folder = tmp_path / "a project"
    (folder / "config").mkdir(parents=True)
    for name, text in {"rate.csv": "1", "rates.json": '{"rate": 10}', "number.txt": "100"}.items():
        (folder / "config" / name).write_text(text)
    project = SmallProject.make(folder, spark_remote, "")
    (folder / "relative_reads.py").write_text(RELATIVE)
    stages = {"rated": {"job": "relative_reads:rated", "source": NUMBERS, "reads": {"files": "config"}}}
    monkeypatch.chdir(tmp_path)
    records = project.run(project.pipeline("relative", stages, reads="strict"), "one")["rated"]
    assert {rate for record in records for rate in values_of(record, "rate")} == {111}
    assert Path.cwd() == tmp_path


def change_variable(folder: Path, rate: int, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("STAGEHOLD_TEST_RATE", str(rate))


def change_file(folder: Path, rate: int, patch: pytest.MonkeyPatch) -> None:
    (folder / "side.json").write_text(json.dumps(rate))


def change_table(folder: Path, rate: int, patch: pytest.MonkeyPatch) -> None:
    write_deltalake(
        str(folder / "lake" / "marts" / "rates"), pa.table({"rate": pa.array([rate], pa.int32())}), mode="overwrite"
    )


def declared(project: SmallProject, rated: str, reads: object) -> Pipeline:
    gathered = {"inputs": {"numbers": "gather", rated: "gather"}}
    stages = {
        "numbers": {"source": NUMBERS},
        rated: {"inputs": {"numbers": "gather"}, "reads": reads},
        "summed": gathered,
    }
    return project.pipeline("rated", stages, execution_mode="batch_forced")


@pytest.mark.parametrize(
    ("rated", "reads", "change", "reason"),
    [
        ("by_variable", {"env": ["STAGEHOLD_TEST_RATE"]}, change_variable, "reads: env STAGEHOLD_TEST_RATE changed"),
        ("by_file", {"files": ["side.json"]}, change_file, "reads: file side.json changed"),
        ("by_table", {"tables": ["marts.rates"]}, change_table, "reads: table marts.rates changed"),
    ],
)
def test_a_declared_read_that_changed_runs_its_stage_and_what_follows(
    tmp_path, spark_remote, monkeypatch, rated, reads, change, reason
):
    project = SmallProject.make(tmp_path, spark_remote, JOBS.format(folder=str(tmp_path)))
    change(tmp_path, 1, monkeypatch)
    pipeline = declared(project, rated, reads)
    first = project.run(pipeline, "first")
    request = RunRequest(pipeline, "again", INTERVAL, {})
    assert current_plan(request, project.settings).stages_that_compute() == ()
    change(tmp_path, 2, monkeypatch)
    plan = current_plan(request, project.settings)
    assert plan.stages_that_compute() == (rated, "summed")
    assert {str(decision.reason) for decision in plan.of(rated)} == {reason}
    second = project.run(pipeline, "second")
    assert second["numbers"] == first["numbers"]
    assert second["summed"][0].fingerprint != first["summed"][0].fingerprint
    assert current_plan(request, project.settings).stages_that_compute() == ()


def test_a_strict_stage_that_reads_what_it_does_not_declare_begins_no_run(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, JOBS.format(folder=str(tmp_path)))
    with pytest.raises(UndeclaredRead, match=r"by_variable reads env STAGEHOLD_TEST_RATE"):
        project.run(declared(project, "by_variable", "strict"), "first")
    with project.ledger() as ledger:
        assert ledger.runs.recent(1) == ()
