"""Runs of one interval, one after the other, at the same time, by Airflow and by `stagehold run`: nothing is computed
twice, and the ledger holds the same whoever computed it.
"""

from __future__ import annotations

import pytest
from tests.e2e.stack import Stack

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, Cell, RunState

pytestmark = pytest.mark.e2e

STAGE = "shipping_priority"


@pytest.fixture(scope="module")
def whole_run(sample: Stack) -> DagRun:
    """A run of the interval `whole` that nothing went wrong in."""
    return sample.run("whole")


def test_a_run_succeeds_and_a_second_one_of_its_interval_reuses_everything_without_a_session(
    sample: Stack, whole_run: DagRun
):
    sample.assert_answer_is_right("whole")
    records = sample.records("whole")
    assert sum(len(found) for found in records.values()) == sample.partitions
    assert all(len({record.wave for record in found}) > 1 for stage, found in records.items() if stage != "top_orders")
    again = sample.run("whole")
    assert sample.records("whole") == records
    assert {attempt.state for attempt in sample.attempts(again)} == {AttemptState.FINISHED}
    for task_id, task in sample.airflow.tasks(again.dag_id, again.run_id).items():
        log = sample.log(again, task_id, task.number)
        assert "computed 0 in 0 waves" in log
        assert "Spark session" not in log
    assert "opened Spark session" in sample.log(whole_run, STAGE, 1)


def test_of_two_runs_of_one_interval_one_waits_for_the_other_and_computes_nothing_again(stack: Stack):
    runs = [stack.start("two"), stack.start("two")]
    for run in runs:
        stack.finish(run)
        assert {task.number for task in stack.airflow.tasks(run.dag_id, run.run_id).values()} == {1}  # no try failed
    with Ledger.open(stack.settings.ledger_url) as ledger:
        times = {
            stage: len(ledger.partitions.history(Cell(run.dag_id, stage, "two"))) for stage in stack.records("two")
        }
    assert sum(times.values()) == stack.partitions, times
    assert "waiting" in {event.kind for run in runs for event in stack.events(run)}
    stack.assert_answer_is_right("two")


def recorded(stack: Stack, interval: str) -> list[tuple[object, ...]]:
    """Everything the ledger holds of an interval's partitions but ids, times and how they fell into waves."""
    return [
        (
            stage,
            record.partition,
            record.state,
            record.rows,
            record.fingerprint,
            record.compute_key,
            len(record.files),
            record.epoch,
            record.reason,
        )
        for stage, records in sorted(stack.records(interval).items())
        for record in records
    ]


def ended(stack: Stack, interval: str) -> tuple[RunState, list[tuple[str, int, AttemptState]]]:
    """How the first run of an interval and its attempts ended."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        run = [run for run in ledger.runs.recent(100, stack.pipeline) if run.interval == interval][-1]
        return run.state, sorted(
            (attempt.region, attempt.epoch, attempt.state) for attempt in ledger.attempts.of_run(run.run_id)
        )


def test_the_same_pipeline_leaves_the_same_rows_through_airflow_and_through_the_command(
    sample: Stack, whole_run: DagRun
):
    sample.run_here("by-command")
    assert len(recorded(sample, "whole")) == sample.partitions
    assert recorded(sample, "by-command") == recorded(sample, "whole")
    assert ended(sample, "by-command") == ended(sample, "whole")
    for interval in ("whole", "by-command"):
        sample.assert_answer_is_right(interval)
