"""`failover: full` on Spark: what a run computes again after one of its regions failed, and what it does not."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.run.small_project import INTERVAL, NUMBERS, SmallProject

from stagehold.errors import StageholdError
from stagehold.ledger import Ledger
from stagehold.model.records import RunState
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest

pytestmark = pytest.mark.spark

JOBS = """
from stagehold import stage
from pyspark.sql import functions as F

@stage
def numbers(ctx, source):
    return source

@stage
def aside(ctx, numbers):
    return numbers.withColumn("chance", F.rand())

@stage
def total(ctx, numbers):
    return numbers.agg(F.sum("number").alias("total"))
"""
BLOCKING = {"type": "blocking"}
STAGES = {
    "numbers": {"source": NUMBERS, "output": BLOCKING},
    "aside": {"inputs": {"numbers": "forward"}, "output": BLOCKING},  # nobody reads it; other data each time
    "total": {"inputs": {"numbers": "gather"}, "output": {"type": "blocking_persistent", "table": "marts.total"}},
}
ONCE_AGAIN = {"strategy": "fixed-delay", "attempts": 1, "delay": "100ms"}


@pytest.fixture
def project(tmp_path, spark_remote):
    return SmallProject.make(tmp_path, spark_remote, JOBS)


def fail_at(project, stage):
    inject(project.settings.home_path, Point.BEFORE_WRITE, stage, 1, FaultAction.RAISE)


def computed(project, run_id):
    """How often the run recorded each partition: "stage partition" -> times."""
    with Ledger.open(project.settings.ledger_url) as ledger:
        return dict(
            Counter(f"{partition.cell.stage} {partition.partition}" for partition in ledger.partitions.of_run(run_id))
        )


def regions_tried(project, run_id):
    with Ledger.open(project.settings.ledger_url) as ledger:
        assert ledger.runs.get(run_id).state is RunState.FINISHED
        return [f"{attempt.region} {attempt.state}" for attempt in ledger.attempts.of_run(run_id)]


def times(numbers=(), aside=(), total=()):
    given = {"numbers": numbers, "aside": aside, "total": total}
    return {f"{stage} {place}": count for stage, counts in given.items() for place, count in enumerate(counts) if count}


def test_all_that_the_run_had_made_is_made_once_more_also_what_the_failed_region_does_not_read(project):
    pipeline = project.pipeline("p", STAGES, failover="full", restart=ONCE_AGAIN)
    fail_at(project, "total")
    project.run(pipeline, "r1")
    assert computed(project, "r1") == times([2] * 4, [2] * 4, [1])
    assert regions_tried(project, "r1") == [
        "numbers finished",
        "aside finished",
        "total failed",
        "total finished",
        "numbers finished",
        "aside finished",
    ]
    with Ledger.open(project.settings.ledger_url) as ledger:
        events = [event for event in ledger.events.of_run("r1") if event.kind == "failed"]
    assert len(events) == 1


def test_what_an_earlier_run_left_counts_as_ever(project):
    pipeline = project.pipeline("p", STAGES, failover="full", restart=ONCE_AGAIN)
    project.run(pipeline, "r0")
    project.write_source(1, 7)
    fail_at(project, "total")
    project.run(pipeline, "r1")
    assert computed(project, "r1") == times([0, 2], [0, 2], [1])


def test_by_region_nothing_is_made_twice(project):
    pipeline = project.pipeline("p", STAGES, restart=ONCE_AGAIN)
    fail_at(project, "total")
    project.run(pipeline, "r1")
    assert computed(project, "r1") == times([1] * 4, [1] * 4, [1])


def test_the_preview_of_a_resume_says_so_and_the_resume_does_it_once(project):
    pipeline = project.pipeline("p", STAGES, failover="full", restart={"strategy": "none"})
    fail_at(project, "total")
    with pytest.raises((StageholdError, RuntimeError)):
        project.run(pipeline, "r1")
    plan = current_plan(RunRequest(pipeline, "r1", INTERVAL, {}), project.settings)
    assert {str(decision.reason) for stage in ("numbers", "aside") for decision in plan.of(stage)} == {
        "this run starts anew after a failure (failover: full)"
    }
    assert plan.counts.run == 9
    project.run(pipeline, "r1")
    assert computed(project, "r1") == times([2] * 4, [2] * 4, [1])
    project.run(pipeline, "r1")
    assert computed(project, "r1") == times([2] * 4, [2] * 4, [1])


def test_another_run_takes_what_the_failed_one_left(project):
    pipeline = project.pipeline("p", STAGES, failover="full", restart={"strategy": "none"})
    fail_at(project, "total")
    with pytest.raises((StageholdError, RuntimeError)):
        project.run(pipeline, "r1")
    project.run(pipeline, "r2")
    assert computed(project, "r2") == times(total=[1])
