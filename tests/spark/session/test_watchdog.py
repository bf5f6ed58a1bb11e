"""Calls that make no progress, told by a clock and without Spark: when the watchdog barks, and what it does then."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql.connect.proto import ExecutePlanResponse

from stagehold.spark.session.watchdog import CallClock, Watchdog
from stagehold.spark.session.watched_calls import WatchedAnswers

PROGRESS = ExecutePlanResponse.ExecutionProgress


def answer(completed=None):
    if completed is None:
        return ExecutePlanResponse(result_complete=ExecutePlanResponse.ResultComplete())
    stage = PROGRESS.StageInfo(stage_id=1, num_tasks=9, num_completed_tasks=completed)
    return ExecutePlanResponse(execution_progress=PROGRESS(stages=[stage], num_inflight_tasks=1))


class HandClock(CallClock):
    """A clock on which time passes when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        super().__init__(lambda: self.seconds)


@pytest.fixture
def clock():
    return HandClock()


def waited(clock, answers, seconds, operation="a"):
    """How long the execution has made no progress when its next answer is a second call later."""
    found = []

    def slow():
        for one in answers:
            clock.seconds += seconds
            found.append(clock.longest()[1])
            yield one

    for _ in WatchedAnswers(slow(), clock, "ExecutePlan", operation):
        pass
    return found


def test_reports_that_say_nothing_new_are_no_progress(clock):
    assert waited(clock, [answer(1), answer(1), answer(1), answer(2), answer(2), answer()], 10) == [
        10,
        10,
        20,
        30,
        10,
        20,
    ]


def test_an_execution_that_is_taken_up_again_goes_on_and_another_begins_anew(clock):
    assert waited(clock, [answer(1), answer(1)], 10) == [10, 10]
    assert waited(clock, [answer(1)], 10) == [20]
    assert waited(clock, [answer(1)], 10, operation="b") == [10]


def test_what_is_not_under_way_is_no_stall(clock):
    with clock.waiting("AnalyzePlan"):
        clock.seconds += 5
        assert clock.longest() == ("AnalyzePlan", 5)
    assert clock.longest() is None
    with clock.waiting("AnalyzePlan"):
        assert clock.longest() == ("AnalyzePlan", 0)


def test_the_watchdog_writes_down_what_everybody_does_before_it_interrupts():
    clock, done, ended = CallClock(), [], threading.Event()
    watching = Watchdog(
        clock,
        0.2,
        dump=lambda: done.append("dump") or Path("dumps/x"),
        interrupt=lambda: done.append("interrupt") or ended.set(),
    )
    with watching as watchdog, clock.waiting("AnalyzePlan"):
        assert ended.wait(10)
    assert done == ["dump", "interrupt"]
    assert (watchdog.stalled.call, watchdog.stalled.dumps) == ("AnalyzePlan", "dumps/x")


def test_a_dump_that_fails_does_not_save_the_call(caplog):
    ended = threading.Event()
    clock = CallClock()
    with (
        Watchdog(clock, 0.2, dump=lambda: Path("/proc/nothing").read_text(), interrupt=ended.set) as watchdog,
        clock.waiting("X"),
    ):
        assert ended.wait(10)
    assert watchdog.stalled.dumps is None


def test_short_calls_are_left_alone():
    clock, barked = CallClock(), []
    with Watchdog(clock, 0.4, dump=lambda: Path(), interrupt=lambda: barked.append(1)) as watchdog:
        for _ in range(10):
            with clock.waiting("AnalyzePlan"):
                time.sleep(0.1)
    assert (barked, watchdog.stalled) == ([], None)
