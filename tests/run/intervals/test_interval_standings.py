"""What the ledger has of an interval, out of what the pipeline declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.samples import START, record, run

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, PartitionCount
from stagehold.model.standing import IntervalState, PartitionState, together
from stagehold.run.intervals.interval_standings import known_intervals, stage_standings, standing_on_record
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

DAY = "2024-01-01"
SOURCE = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 4}


def pipeline(partitions: int | str = 16) -> Pipeline:
    keyed = {"exchange": "keyed", "key": "o_orderkey"}
    stages = {
        "shipping_priority": {"job": "jobs.tpch:orders", "source": SOURCE},
        "totals": {
            "job": "jobs.tpch:top_orders",
            "inputs": {"shipping_priority": keyed},
            "partitions": partitions,
            "output": {"type": "blocking_persistent", "table": "marts.totals"},
        },
    }
    return build_pipeline({"pipeline": "sales", "stages": stages}, project=Path(), suites=Path())


@pytest.fixture
def ledger(ledger_file):
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.fixture
def have(ledger):
    """Have so many partitions of a stage on record, and a run that succeeded."""
    ledger.runs.start(run("run-1", interval=DAY))
    lease = ledger.leases.acquire(f"sales/{DAY}", "me", 60)

    def record_them(stage: str, numbers: range, state: PartitionState = PartitionState.CONSUMABLE) -> None:
        cell = Cell("sales", stage, DAY)
        ledger.partitions.record([replace(record(number, cell=cell), state=state) for number in numbers], lease)

    record_them("shipping_priority", range(4))
    record_them("shipping_priority", range(4), PartitionState.RELEASED)
    return record_them


def known(ledger, declared: Pipeline) -> tuple[IntervalState, str]:
    (one,) = known_intervals(declared, ledger, 10)
    return one.state, one.standing


def test_what_was_never_begun_is_missing(ledger, have):
    have("totals", range(12))
    assert known(ledger, pipeline()) == ("incomplete", "16 of 20 consumable or released, 4 missing")
    have("totals", range(12, 16))
    assert known(ledger, pipeline()) == ("complete", "20 of 20 consumable or released")


def test_a_stage_that_never_began_is_missing(ledger, have):
    state, text = known(ledger, pipeline())
    assert (state, text) == ("empty", "4 of 20 consumable or released, 16 missing")


def test_the_number_that_was_decided_for_the_interval_counts(ledger, have):
    have("totals", range(2))
    assert known(ledger, pipeline("auto"))[0] == "incomplete"
    ledger.partition_counts.decide(PartitionCount(Cell("sales", "totals", DAY), 3, 100, START))
    assert known(ledger, pipeline("auto")) == ("incomplete", "6 of 7 consumable or released, 1 missing")
    have("totals", range(2, 3))
    assert known(ledger, pipeline("auto"))[0] == "complete"


def test_partitions_that_are_declared_no_more_do_not_count(ledger, have):
    have("totals", range(4, 24))
    assert known(ledger, pipeline()) == ("incomplete", "16 of 20 consumable or released, 4 missing")
    have("totals", range(4))
    assert known(ledger, pipeline())[0] == "complete"


def test_of_a_stage_the_pipeline_does_not_declare_nothing_counts(ledger, have):
    have("totals", range(16))
    have("gone", range(3), PartitionState.BLOCKED)
    assert together(stage_standings(pipeline(), DAY, ledger).values()).whole


def test_of_a_pipeline_that_cannot_be_loaded_only_the_record_is_told(ledger, have):
    have("totals", range(12))
    standing = standing_on_record("sales", DAY, ledger)
    assert (standing.whole, str(standing)) == (False, "12 of 16 on record consumable, 4 released")
