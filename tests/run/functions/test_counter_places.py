"""Wherever in a function a counter stands, it counts every row of its frame once."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.run.small_project import FILES, INTERVAL, NUMBERS, ROWS, SmallProject

from stagehold.errors import StageContractBroken, StageFailed
from stagehold.model.context import StageContext, StageCounters
from stagehold.model.standing import counted_in_all
from stagehold.run.here.trial import try_stage
from stagehold.run.planning.planning import RunRequest
from stagehold.testing.stage_tests import StageTests

pytestmark = pytest.mark.spark

BODIES = {
    "limited": "return counted.limit(1)",
    "below_nothing": "return counted.where('1 = 0')",
    "joined_with_nothing": "return counted.join(numbers.where('number < 0'), 'number')",
    "merged": """
    few = numbers.where("number % 25 = 3").repartition(3, "number").hint("merge")
    return counted.repartition(3, "number").transform(more).hint("merge").join(few, "number")""",
    "joined_with_itself": "return counted.join(counted.withColumnRenamed('number', 'other'), F.expr('number = other'))",
    "unioned_with_itself": "return counted.union(counted)",
    "sorted": "return counted.orderBy(F.desc('number'))",
    "ranged": "return counted.repartitionByRange(2, 'number')",
    "grouped": "return counted.groupBy((F.col('number') % 3).alias('number')).agg(F.count('*').alias('rows'))",
    "asked_for_some": "few = counted.take(1)\n    return counted.where(F.lit(bool(few)))",
    "kept": "kept = counted.cache()\n    kept.count()\n    return kept.where('number > 3')",
    "in_a_view": """
    counted.createOrReplaceTempView("those")
    return numbers.sparkSession.sql("SELECT * FROM those WHERE number > 3")""",
    "of_a_view": """
    numbers.createOrReplaceTempView("those")
    return numbers.sparkSession.sql("SELECT * FROM those").transform(more).limit(2)""",
    "after_a_setting": """
    numbers.sparkSession.conf.set("spark.sql.shuffle.partitions", "3")
    return counted.limit(3)""",
    "twice_of_one_name": """
    return counted.where("number < 10").transform(more).unionByName(numbers.where("number >= 10").transform(more))""",
}
TIMES = {"merged": 2, "twice_of_one_name": 2, "of_a_view": 2}  # as often as a body of these counts all rows
JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def in_workers(ctx, numbers):
    @F.udf("long")
    def asked(number):
        ctx.counter("asked")
        return number
    return numbers.select(asked("number").alias("number"))

@stage
def no_aggregate(ctx, numbers):
    return numbers.transform(ctx.counter("rows").of(F.col("number")))

@stage
def counts_apart(ctx, numbers):
    return numbers.transform(ctx.counter("each").of(F.count_distinct("number")))
""" + "".join(
    f"""
@stage
def {name}(ctx, numbers):
    more = ctx.counter("rows").of(F.count("*"))
    counted = numbers.transform(more)
    {body.strip()}
"""
    for name, body in BODIES.items()
)
FORWARD = {"inputs": {"numbers": "forward"}, "output": {"type": "blocking"}}


@pytest.fixture(scope="module")
def project(tmp_path_factory, spark_remote) -> SmallProject:
    return SmallProject.make(tmp_path_factory.mktemp("counting"), spark_remote, JOBS)


def made(project: SmallProject, *stages: str) -> Any:
    declared = {"numbers": {"source": NUMBERS, "output": {"type": "blocking"}}, **dict.fromkeys(stages, FORWARD)}
    return project.pipeline("placed", declared)


def test_every_row_is_counted_once_whatever_comes_after_the_counter(project):
    project.write_source(1, 0)  # a partition without rows
    try:
        records = project.run(made(project, *BODIES), "first")
    finally:
        project.write_source(1, ROWS)
    rows = (FILES - 1) * ROWS
    assert {name: dict(counted_in_all(records[name])) for name in BODIES} == {
        name: {"rows": rows * TIMES.get(name, 1)} for name in BODIES
    }
    assert {record.counted for name in BODIES for record in records[name] if record.partition == 1} == {(("rows", 0),)}


@pytest.mark.parametrize(("stage", "observed"), [("grouped", True), ("unioned_with_itself", True), ("limited", False)])
def test_only_where_rows_may_be_left_off_another_query_counts_them(project, monkeypatch, stage, observed):
    known: list[bool] = []

    def noted(self: StageCounters, found: Mapping[str, int] | None = None) -> Mapping[str, int]:
        known.append(bool(found))
        return sums(self, found)

    sums = StageCounters.sums
    monkeypatch.setattr(StageCounters, "sums", noted)
    records = project.run(made(project, stage), f"{stage}-observed", interval=f"{stage}-observed")
    assert known == [observed] * FILES
    assert dict(counted_in_all(records[stage])) == {"rows": FILES * ROWS}


def test_a_trial_shows_the_counts_of_its_partition_though_what_comes_before_is_computed_along(project):
    stages = {"limited": FORWARD, "grouped": {"inputs": {"limited": "forward"}, "output": {"type": "blocking"}}}
    job = f"{Path(project.settings.project).name}:limited"
    declared = {"numbers": {"source": NUMBERS, "output": {"type": "blocking"}}, **stages}
    declared["grouped"] = {**declared["grouped"], "job": job.replace("limited", "numbers_of_limited")}
    Path(project.settings.project, f"{Path(project.settings.project).name}.py").write_text(
        JOBS + "\n@stage\ndef numbers_of_limited(ctx, limited):\n"
        "    return limited.transform(ctx.counter('few').of(F.count('*')))\n"
    )
    pipeline = project.pipeline("tried", declared)
    trial = try_stage(RunRequest(pipeline, "try", "other", {}, None), "grouped", 2, project.settings, print, most=5)
    assert trial.along == ("numbers", "limited")
    assert trial.counters == {"few": 1}


def test_a_test_of_a_stage_finds_what_it_counts(project, spark):
    pipelines = Path(project.settings.project, "pipelines")
    pipelines.mkdir(exist_ok=True)
    module = Path(project.settings.project).name
    (pipelines / "tested.yaml").write_text(
        "pipeline: tested\nstages:\n"
        f"  numbers: {{job: '{module}:numbers', source: {{kind: parquet, path: '/raw/*.parquet', splits: 4}}}}\n"
        f"  sorted: {{job: '{module}:sorted', inputs: {{numbers: forward}}}}\n"
    )
    tests = StageTests(spark, replace(project.settings, pipelines=str(pipelines)))
    result = tests.run("sorted", [{"number": 4}, {"number": 2}])
    assert result.counters == {"rows": 2}
    result.assert_rows([{"number": 2}, {"number": 4}])


@pytest.mark.parametrize(
    ("stage", "told"),
    [
        ("in_workers", "counters are not sent to Spark's workers: count rows in the stage's function"),
        ("no_aggregate", "(?i)aggregat"),
        ("counts_apart", "(?i)distinct"),
    ],
)
def test_what_cannot_be_counted_is_told(project, stage, told):
    with pytest.raises((StageFailed, StageContractBroken), match=told):
        project.run(made(project, stage), stage, interval=f"{INTERVAL}-{stage}")


def test_a_context_in_a_worker_has_no_counters():
    context = StageContext("p", "s", "i", None, (0,), 1)
    context.counter("rows")
    with pytest.raises(RuntimeError, match="not sent to Spark's workers"):
        pickle.loads(pickle.dumps(context)).counter("rows")
