"""The demo: a real Airflow run that fails half-way, is resumed, and is compared with an independent answer, which
DuckDB computes straight from the source files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import DemoFailed
from stagehold.extras import Extra, brought_by
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import AirflowClient, DagRun
from stagehold.local.control import start_supervisor
from stagehold.local.demo.sample import make_sample
from stagehold.local.state import living_supervisor
from stagehold.model.records import PartitionRecord
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings

PIPELINE = "shipping_priority"
FAILING_STAGE = "shipping_priority"
FAILING_WAVE = 2
RESULT = "top_orders"
RUN_SECONDS = 300.0
POLL_SECONDS = 0.5

Say = Callable[[str], None]

TopOrder = tuple[int, Decimal, date, int]

SHIPPING_PRIORITY = """
    SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
    FROM read_parquet(?) AS customer
    JOIN read_parquet(?) AS orders ON c_custkey = o_custkey
    JOIN read_parquet(?) AS lineitem ON l_orderkey = o_orderkey
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
    GROUP BY l_orderkey, o_orderdate, o_shippriority
    ORDER BY revenue DESC, o_orderdate, l_orderkey
    LIMIT 10
"""


@dataclass(frozen=True)
class DemoReport:
    """Counts of partitions, and seconds; ``full_seconds`` is a measured run of another, fresh interval."""

    run_id: str
    failed_stage: str
    consumable: int
    total: int
    reused: int
    computed: int
    first_seconds: float
    second_seconds: float
    full_seconds: float
    equal: bool


def run_demo(settings: Settings, scale: float, say: Say) -> DemoReport:
    """Run it from nothing to the report; leaves Airflow up. Each call uses intervals of its own, so it can be repeated.

    :raises DemoFailed: when the run did not fail, or did not succeed, as it should.
    """
    say(f"making TPC-H data, scale {scale}")
    make_sample(Path(settings.lake_uri), scale)
    if living_supervisor(settings) is None:
        say("starting Spark and Airflow")
        start_supervisor(settings, say)
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    with AirflowClient.local(settings) as airflow:
        airflow.await_dag(PIPELINE)
        demo = _Demo(settings, airflow, say)
        return demo.report(f"demo-{started}", f"full-{started}")


class _Demo:
    def __init__(self, settings: Settings, airflow: AirflowClient, say: Say) -> None:
        self.settings, self.airflow, self.say = settings, airflow, say

    def report(self, interval: str, fresh_interval: str) -> DemoReport:
        fault = inject(self.settings.home_path, Point.AFTER_RECORD, FAILING_STAGE, FAILING_WAVE, FaultAction.FAIL)
        try:
            run, first_seconds = self._run(interval, expected="failed")
        finally:
            fault.unlink(missing_ok=True)
        grid = self.airflow.grid(PIPELINE, run.run_id)
        self.say(f"the run failed: {grid['headline']}")
        self._show_preview(grid)
        answer = self.airflow.resume(PIPELINE, run.run_id)
        self.say(f"resumed: {answer['reuse']} partitions are reused, {answer['run']} run")
        second_seconds = self._watch(run, interval, expected="success")
        self.say("for comparison, the same work from scratch")
        _, full_seconds = self._run(fresh_interval, expected="success")
        return DemoReport(
            run_id=run.run_id,
            failed_stage=FAILING_STAGE,
            consumable=grid["consumable"],
            total=grid["partitions"],
            reused=answer["reuse"],
            computed=answer["run"],
            first_seconds=first_seconds,
            second_seconds=second_seconds,
            full_seconds=full_seconds,
            equal=published_top_orders(self.settings, interval) == expected_top_orders(Path(self.settings.lake_uri)),
        )

    def _run(self, interval: str, *, expected: str) -> tuple[DagRun, float]:
        run = self.airflow.trigger(PIPELINE, conf={"interval": interval})
        self.say(f"started {run.run_id} for {interval}")
        return run, self._watch(run, interval, expected=expected)

    def _watch(self, run: DagRun, interval: str, *, expected: str) -> float:
        """Wait for the run's end, telling each stage's progress; returns how long that took."""
        started, told = time.monotonic(), ""
        with open_ledger(self.settings) as ledger:
            while not (current := self.airflow.run(run.dag_id, run.run_id)).ended:
                if time.monotonic() - started > RUN_SECONDS:
                    raise DemoFailed(run.run_id, current.state, expected)
                told = self._tell(_progress(ledger, interval), told)
                time.sleep(POLL_SECONDS)
            self._tell(_progress(ledger, interval), told)
        if current.state != expected:
            raise DemoFailed(run.run_id, current.state, expected)
        return time.monotonic() - started

    def _tell(self, line: str, told: str) -> str:
        if line and line != told:
            self.say(f"  {line}")
        return line

    def _show_preview(self, grid: dict[str, Any]) -> None:
        """What resume will run and why, as the page shows it."""
        for task in grid["resume"]["tasks"]:
            self.say(f"  {task['task_id']}: {task['reason']}")


def _progress(ledger: Ledger, interval: str) -> str:
    found = ledger.partitions.newest_of(PIPELINE, interval)
    return ", ".join(f"{stage} {sum(record.state.readable for record in records)}" for stage, records in found.items())


def published_top_orders(settings: Settings, interval: str, pipeline: str = PIPELINE) -> list[TopOrder]:
    """The published rows of an interval in the answer's order, read by a reader that is not Spark."""
    from deltalake import DeltaTable

    record = _published(settings, interval, pipeline)
    table = DeltaTable(record.table, version=record.version).to_pyarrow_table(filters=[("_interval", "=", interval)])
    rows = table.select(["l_orderkey", "revenue", "o_orderdate", "o_shippriority"]).to_pylist()
    ordered = sorted(rows, key=lambda row: (-row["revenue"], row["o_orderdate"], row["l_orderkey"]))
    return [(row["l_orderkey"], row["revenue"], row["o_orderdate"], row["o_shippriority"]) for row in ordered]


def _published(settings: Settings, interval: str, pipeline: str) -> PartitionRecord:
    with open_ledger(settings) as ledger:
        (record,) = ledger.partitions.newest_of(pipeline, interval)[RESULT]
    return record


def expected_top_orders(lake: Path) -> list[TopOrder]:
    """Rows of ``marts.top_orders``, columns and rows in order: l_orderkey, revenue, o_orderdate, o_shippriority."""
    with brought_by(Extra.INSPECT):
        import duckdb

    files = [str(lake / "raw" / table / "*.parquet") for table in ("customer", "orders", "lineitem")]
    with duckdb.connect() as connection:
        return connection.execute(SHIPPING_PRIORITY, files).fetchall()
