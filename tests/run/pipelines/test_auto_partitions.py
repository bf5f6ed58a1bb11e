"""A stage whose number of partitions follows from the bytes of its inputs, on a real Spark server."""

from __future__ import annotations

from functools import partial

import pytest
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.ledger import Ledger
from stagehold.plan.split import partition_counts
from stagehold.plan.split.partition_counts import ParallelismSettings
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def numbers(ctx, source):
    return source

@stage
def counted(ctx, numbers):
    return numbers.groupBy("number").count()

@stage
def checked(ctx, counted):
    return counted.where("count = 1")
"""
STAGES = {
    "numbers": {"source": NUMBERS, "output": {"type": "blocking"}},
    "counted": {
        "inputs": {"numbers": {"exchange": "keyed", "key": "number"}},
        "partitions": "auto",
        "output": {"type": "blocking"},
    },
    "checked": {"inputs": {"counted": "forward"}},
}


def test_a_number_that_was_decided_stays_whatever_the_inputs_become(tmp_path, spark_remote, monkeypatch):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    pipeline = project.pipeline("counts", STAGES)
    monkeypatch.setattr(partition_counts, "ParallelismSettings", partial(ParallelismSettings, bytes_per_partition=2000))
    first = project.run(pipeline, "first")
    with Ledger.open(project.settings.ledger_url) as ledger:
        (count,) = ledger.partition_counts.decided("counts", INTERVAL).values()
    assert count.bytes == sum(record.bytes for record in first["numbers"])
    assert 1 < count.partitions == len(first["counted"]) == len(first["checked"])
    assert sum(record.rows for record in first["checked"]) == 100
    again = current_plan(RunRequest(pipeline, "again", INTERVAL, {}), project.settings)
    assert again.stages_that_compute() == ()
    project.write_source(0, 2000)
    second = project.run(pipeline, "second")
    assert len(second["counted"]) == len(second["checked"]) == count.partitions
    assert sum(record.rows for record in second["numbers"]) == 2075
    with Ledger.open(project.settings.ledger_url) as ledger:
        skewed = [event.text for event in ledger.events.of_run("second") if event.kind == "skewed"]
    assert any("is skewed: 2000 rows, " in text for text in skewed)
