"""Errors of Python workers, as Spark Connect hands them over."""

from __future__ import annotations

from stagehold.plan.restart.python_traceback import RaisedError, TracedFrame, read_traceback

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/home/me/jobs/orders.py", line 3, in total
    return helper.broken(x)
           ^^^^^^^^^^^^^^^^
  File "/home/me/jobs/helper.py", line 12, in broken
    raise BadInput(f"no such thing: {x}")
jobs.helper.BadInput: no such thing: 0
  File "this is the message", line 9, in no_frame
second line
 SQLSTATE: 38000
"""

CHAINED = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "jobs/orders.py", line 3, in total
    int("x")
ValueError: invalid literal for int() with base 10: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "pyspark/worker.py", line 99, in main
    process()
MemoryError
 SQLSTATE: 38000"""


def test_the_error_is_read_with_its_frames_and_its_whole_message():
    raised = read_traceback(WORKER)
    assert raised == RaisedError(
        "jobs.helper.BadInput",
        'no such thing: 0\n  File "this is the message", line 9, in no_frame\nsecond line',
        (TracedFrame("/home/me/jobs/orders.py", 3, "total"), TracedFrame("/home/me/jobs/helper.py", 12, "broken")),
    )


def test_of_several_errors_the_last_one_came_out():
    raised = read_traceback(CHAINED)
    assert (raised.kind, raised.message, str(raised)) == ("MemoryError", "", "MemoryError")
    assert [frame.file for frame in raised.frames] == ["jobs/orders.py", "pyspark/worker.py"]


def test_what_shows_no_error_is_none():
    assert read_traceback("") is None
    assert read_traceback("ValueError: x") is None
    assert read_traceback("Traceback (most recent call last):") is None
    assert read_traceback('Traceback (most recent call last):\n  File "a.py", line 1, in b\n(torn off)') is None
