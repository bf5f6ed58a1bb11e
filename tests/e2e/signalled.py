"""Runs of the pipeline `signalled` whose task is stopped in the middle of its second wave, and what came of them."""

from __future__ import annotations

import duckdb
from deltalake import DeltaTable
from tests.e2e.stack import Stack

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, Cell, FailureClass
from stagehold.run.faults import FaultAction, Point, inject

STAGE = "customer"
WAVE = 4  # partitions, of which the stage has twice as many
# One stage in two waves, so that many runs of it are soon over.
SIGNALLED = """\
pipeline: signalled
wave: 100ms
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 8}
    output: {type: blocking_persistent, table: marts.signalled}
"""
End = tuple[AttemptState, FailureClass | None, str | None]
FINISHED: End = (AttemptState.FINISHED, None, None)
UNASKED: list[End] = [(AttemptState.FAILED, FailureClass.ENVIRONMENT, "terminated"), FINISHED]


def in_second_wave(stack: Stack, interval: str) -> tuple[DagRun, int]:
    """A run whose task has stopped when Spark was writing its second wave, and the pid of the task."""
    inject(stack.settings.home_path, Point.MID_WRITE, STAGE, 2, FaultAction.FREEZE, interval)
    run = stack.start(interval)
    task = stack.await_frozen_task()
    assert len(stack.records(interval)[STAGE]) == WAVE
    return run, task


def ends(stack: Stack, run: DagRun) -> list[End]:
    return [(attempt.state, attempt.failure_class, attempt.failure_rule) for attempt in stack.attempts_of(run, STAGE)]


def failures(stack: Stack, run: DagRun) -> list[str | None]:
    return [attempt.failure for attempt in stack.attempts_of(run, STAGE)]


def assert_computed_once(stack: Stack, interval: str, epochs: list[int]) -> None:
    """Nothing that was committed was computed again: each partition has one record, of the attempt with its epoch; and
    what is published is as DuckDB has it.
    """
    with Ledger.open(stack.settings.ledger_url) as ledger:
        history = ledger.partitions.history(Cell(stack.pipeline, STAGE, interval))
    assert sorted((one.partition, one.epoch) for one in history) == list(enumerate(epochs))
    lake = stack.settings.lake_uri
    published = DeltaTable(f"{lake}/marts/signalled").to_pyarrow_table(filters=[("_interval", "=", interval)])
    right = duckdb.sql(f"select c_custkey from '{lake}/raw/customer/*.parquet' where c_mktsegment = 'BUILDING'")
    assert sorted(published["c_custkey"].to_pylist()) == sorted(key for (key,) in right.fetchall())
