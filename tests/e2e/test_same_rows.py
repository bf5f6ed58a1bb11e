"""A pipeline leaves the same in the ledger whoever starts it: Airflow, task by task, or `stagehold run`, in one process."""

from __future__ import annotations

import pytest
from tests.e2e.stack import PARTITIONS, PIPELINE, Stack

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, RunState

pytestmark = pytest.mark.e2e


def recorded(stack: Stack, interval: str) -> list[tuple[object, ...]]:
    """Everything the ledger holds of an interval's partitions but ids, times and how they fell into waves."""
    return [
        (stage, one.partition, one.state, one.rows, one.fingerprint, one.compute_key, len(one.files), one.epoch, one.reason)
        for stage, records in sorted(stack.records(interval).items())
        for one in records
    ]


def ended(stack: Stack, interval: str) -> tuple[RunState, list[tuple[str, int, AttemptState]]]:
    """How the first run of an interval and its attempts ended."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        run = [run for run in ledger.runs.recent(100, PIPELINE) if run.interval == interval][-1]
        return run.state, sorted((one.region, one.epoch, one.state) for one in ledger.attempts.of_run(run.run_id))


def test_the_same_pipeline_leaves_the_same_rows_through_airflow_and_through_the_command(stack: Stack, whole_run: DagRun):
    stack.run_here("by-command")
    assert len(recorded(stack, "whole")) == PARTITIONS
    assert recorded(stack, "by-command") == recorded(stack, "whole")
    assert ended(stack, "by-command") == ended(stack, "whole")
    for interval in ("whole", "by-command"):
        stack.assert_answer_is_right(interval)
