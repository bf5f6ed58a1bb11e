"""What `execution_mode: auto` weighs by: the newest run that stored everything, as it was known when the run began."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.samples import attempt, record, run
from tests.made_records import START
from tests.plan.resume.situations import gather, source, stage

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.model.states import AttemptEvent
from stagehold.run.planning.interval_form import RUNS_ASKED, in_weighed_form
from stagehold.spec.pipeline import Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import Worth

RAW = source("raw").model_copy(update={"output": Output(type=OutputType.PIPELINED, falls_back=True)})
PIPELINE = Pipeline(name="sales", file="sales.yaml", stages=(RAW, stage("total", gather("raw"), partitions=1)))


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield ledger


def ran(ledger: Ledger, number: int, *, raw: tuple[int, ...] = (0, 1), seconds: float = 40.0) -> None:
    """A run that began with its number's minute, and stored these partitions of `raw` within another half."""
    ledger.runs.create(run(f"run-{number}", interval=f"day-{number}", minutes=number))
    when = START + timedelta(minutes=number, seconds=30)
    for name, partitions in (("raw", raw), ("total", (0,))):
        cell = Cell("sales", PIPELINE.stage(name).id, f"day-{number}")
        facts = {"run_id": f"run-{number}", "seconds": seconds, "storing": 4.0, "recorded_at": when}
        records = [record(partition, cell=cell, **facts) for partition in partitions]
        lease = ledger.leases.acquire(f"lease-{number}-{name}", "test", 60)
        ledger.partitions.record([replace(one, epoch=lease.epoch) for one in records], lease)


def worth(ledger: Ledger, run_id: str) -> Worth | None:
    return in_weighed_form(PIPELINE, run_id, ledger).stage("raw").output.worth


def test_what_no_run_has_timed_is_stored(ledger):
    assert worth(ledger, "run-1") == Worth(True)


def test_the_newest_run_that_stored_all_partitions_counts(ledger):
    ran(ledger, 1, seconds=10.0)
    ran(ledger, 2, seconds=40.0)
    ran(ledger, 3, raw=(0,))
    ran(ledger, 4, raw=())
    assert worth(ledger, "run-5") == Worth(False, 72.0, 8.0)


def test_all_attempts_of_a_run_weigh_by_what_was_known_when_it_began(ledger):
    ran(ledger, 1, seconds=40.0)
    ledger.runs.create(run("run-2", interval="day-2", minutes=2))
    before = worth(ledger, "run-2")
    ran(ledger, 3, seconds=400.0)
    assert worth(ledger, "run-2") == before == Worth(False, 72.0, 8.0)
    assert worth(ledger, "run-4") == Worth(False, 792.0, 8.0)


def test_after_some_runs_that_stored_nothing_one_stores_again(ledger):
    ran(ledger, 1)
    for number in range(2, RUNS_ASKED + 1):
        ran(ledger, number, raw=())
    assert worth(ledger, "next") == Worth(False, 72.0, 8.0)
    ran(ledger, RUNS_ASKED + 1, raw=())
    assert worth(ledger, "next") == Worth(True)


def test_what_takes_long_is_stored_where_attempts_fail_often(ledger):
    ran(ledger, 1, seconds=200.0)
    assert worth(ledger, "next") == Worth(False, 392.0, 8.0)
    for number in range(200):
        failed = replace(attempt(number + 1, run_id="run-1"), started_at=START + timedelta(seconds=number))
        ledger.attempts.create(failed, AttemptEvent.SCHEDULE)
        ledger.attempts.begin(failed.attempt_id, number + 1)
        ledger.attempts.apply(failed.attempt_id, AttemptEvent.FAIL)
    assert worth(ledger, "next") == Worth(True, 392.0, 8.0)


def test_the_length_of_a_wave_may_follow_from_failures(ledger):
    ran(ledger, 1)
    auto = PIPELINE.model_copy(update={"wave": "auto"})
    assert in_weighed_form(auto, "next", ledger).stage("raw").output.worth == Worth(False, 72.0, 8.0)
