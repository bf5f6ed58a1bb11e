"""What partitions came to, interval by interval, from what the ledger has added up. A table: tallies in, counts out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stagehold.airflow.pipeline_page.gate_rates import gate_rates
from stagehold.ledger.across.intervals import GateTally
from stagehold.model.choices import Severity
from stagehold.spec.loading.loader import build_pipeline

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 2}
STAGES = {
    "orders": {"job": "jobs.tpch:orders", "uid": "orders_1", "source": SOURCE},
    "priced": {"job": "jobs.tpch:customer", "source": SOURCE},
}
PIPELINE = build_pipeline({"pipeline": "sales", "stages": STAGES}, project=Path(), suites=Path())
DAYS = ("2026-11-23", "2026-11-24")
CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO


def tally(passed: bool, partitions: int, severity: Severity = CRITICAL, day: int = 1, **facts: str) -> GateTally:
    given = {"stage": "orders_1", "expectation": "no nulls", "suite": "orders", **facts}
    judged_at = NOW + timedelta(days=day)
    return GateTally(
        DAYS[day], given["stage"], given["suite"], given["expectation"], severity, passed, partitions, judged_at
    )


@pytest.mark.parametrize(
    ("tallies", "waived", "expected"),
    [
        pytest.param([tally(True, 5)], 0, {"passed": 5}, id="all met it"),
        pytest.param([tally(True, 5), tally(False, 3)], 0, {"passed": 5, "failed": 3}, id="some did not"),
        pytest.param([tally(False, 3)], 2, {"failed": 1, "waived": 2}, id="and were waived"),
        pytest.param([tally(False, 3)], 9, {"waived": 3}, id="more words than partitions"),
        pytest.param([tally(False, 3, WARNING)], 2, {"warning": 3}, id="a warning needs no waiver"),
        pytest.param([tally(False, 1, INFO), tally(True, 1, INFO)], 0, {"info": 1, "passed": 1}, id="information"),
        pytest.param([tally(False, 2), tally(False, 1, WARNING)], 0, {"failed": 2, "warning": 1}, id="two severities"),
    ],
)
def test_rates_count_the_outcomes_of_partitions_by_interval(tallies, waived, expected):
    words = {(DAYS[1], "orders_1", "no nulls"): waived} if waived else {}
    ((one,),) = [stage.expectations for stage in gate_rates(PIPELINE, DAYS, tallies, words).stages]
    assert [(rate.interval, dict(rate.counts)) for rate in one.rates] == [(DAYS[1], expected)]


def test_intervals_come_in_their_order_and_one_that_was_not_judged_is_left_out():
    every = gate_rates(PIPELINE, DAYS, [tally(True, 2), tally(False, 1, day=0)], {})
    assert every.intervals == DAYS
    (one,) = every.stages[0].expectations
    assert [rate.interval for rate in one.rates] == list(DAYS)
    (one,) = gate_rates(PIPELINE, DAYS, [tally(True, 2)], {}).stages[0].expectations
    assert [rate.interval for rate in one.rates] == [DAYS[1]]


def test_rates_have_the_names_of_stages_and_the_last_severity_of_expectations():
    before, after = tally(False, 1, WARNING, day=0), tally(True, 1)
    told = gate_rates(PIPELINE, DAYS, [before, after, tally(True, 1, stage="gone")], {})
    assert [(stage.stage, stage.gate) for stage in told.stages] == [("orders", None)]
    assert [one.severity for one in told.stages[0].expectations] == [CRITICAL]
