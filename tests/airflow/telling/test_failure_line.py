"""The last line of a failed task's log, by its error."""

from __future__ import annotations

import pytest

from stagehold.errors.gate_errors import GateBlocked
from stagehold.errors.spark_errors import SparkUnavailable
from stagehold.errors.stage_errors import StageFailed
from stagehold.run.delivery.wave import WavePlace, in_wave

pytestmark = pytest.mark.airflow

FAILED = StageFailed(
    stage="totals", partitions=[4, 5, 6], problem="KeyError: 'x'", place="jobs/sales.py:12, in totals", trace="a\nb"
)


def in_third_wave(error: Exception) -> Exception:
    with pytest.raises(type(error)), in_wave(WavePlace("totals", 3, (4, 5, 6))):
        raise error
    return error


def wrapped(error: Exception) -> Exception:
    outer = RuntimeError("something came of it")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            lambda: FAILED,
            "stage totals, before its first wave, partitions 4-6: KeyError: 'x' at jobs/sales.py:12, in totals",
        ),
        (
            lambda: in_third_wave(ValueError("first\nsecond")),
            "stage totals, wave 3, partitions 4-6: ValueError: first",
        ),
        (
            lambda: wrapped(in_third_wave(ValueError("x"))),
            "stage totals, wave 3, partitions 4-6: RuntimeError: something came of it",
        ),
        (
            lambda: GateBlocked("totals", {7: "few(rows): 12", 3: "few(rows): 13"}),
            "stage totals, gate, partitions 3, 7: few(rows): 12",
        ),
        (
            lambda: SparkUnavailable("nobody answers"),
            "task totals[0-3]: SparkUnavailable: Spark cannot be used: nobody answers",
        ),
        (lambda: MemoryError(), "task totals[0-3]: MemoryError"),
    ],
)
def test_the_last_line_says_where_and_why_a_task_failed(make, line):
    from stagehold.airflow.telling.failure_line import failure_line

    assert failure_line("totals[0-3]", make(), "http://tab") == f"Failed: {line} -- http://tab"


def test_the_last_line_is_one_short_line_whatever_the_error_says():
    from stagehold.airflow.telling.failure_line import LONGEST_CAUSE, failure_line

    line = failure_line("totals", ValueError("x" * 10_000 + "\n" * 5), "http://tab")
    assert "\n" not in line
    assert len(line) < LONGEST_CAUSE + 60


def test_a_trace_is_in_a_group_that_stays_open_and_other_errors_have_none():
    from stagehold.airflow.telling.failure_line import ending_in_one_line

    told, lines = [], []
    with pytest.raises(StageFailed), ending_in_one_line("totals", "http://tab", told.append, lines.append):
        raise FAILED
    assert (len(told), lines) == (1, ["::group::The whole trace", "a", "b"])
    with pytest.raises(KeyboardInterrupt), ending_in_one_line("totals", "", told.append, lines.append):
        raise KeyboardInterrupt
    assert (len(told), len(lines)) == (1, 3)
