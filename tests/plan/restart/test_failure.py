from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from pyspark.errors import AnalysisException
from tests.plan.restart.test_strategy import made

from stagehold import errors
from stagehold.errors import Fenced, GateBlocked, LeaseHeld, PartitionDataMissing, Terminal
from stagehold.model.records import FailureClass
from stagehold.plan.restart.error_facts import RaisedError, TracedFrame, read_traceback
from stagehold.plan.restart.replay import RestartHistory, handle_failure
from stagehold.plan.restart.rules import causes, diagnose

FENCED = Fenced("a", 1, 2)
MISSING = PartitionDataMissing("orders", [3, 4])
HELD = LeaseHeld("a", "somebody", 3)


def caused(*chain):
    """The first error, caused by the second, caused by the third."""
    for error, cause in pairwise(chain):
        error.__cause__ = cause
    return chain[0]


def while_handling(error, handled):
    error.__context__ = handled
    return error


# error -> class
TABLE = [
    ("anything", ValueError("x"), FailureClass.RECOVERABLE),
    ("a file that does not open", FileNotFoundError("x"), FailureClass.ENVIRONMENT),
    ("a network that does not answer", TimeoutError("x"), FailureClass.ENVIRONMENT),
    ("too little memory", MemoryError(), FailureClass.ENVIRONMENT),
    ("another attempt", HELD, FailureClass.ENVIRONMENT),
    ("data that is gone", MISSING, FailureClass.PARTITION_DATA_MISSING),
    ("an error that trying again cannot help", FENCED, FailureClass.NON_RECOVERABLE),
    (
        "the same deep in the chain",
        caused(ValueError("x"), OSError("y"), Fenced("a", 1, 2)),
        FailureClass.NON_RECOVERABLE,
    ),
    ("the same in a context", while_handling(OSError("x"), Fenced("a", 1, 2)), FailureClass.NON_RECOVERABLE),
    ("the same in a group", ExceptionGroup("x", [ValueError("y"), Fenced("a", 1, 2)]), FailureClass.NON_RECOVERABLE),
    (
        "missing data behind something",
        caused(RuntimeError("x"), PartitionDataMissing("a", [1])),
        FailureClass.PARTITION_DATA_MISSING,
    ),
    (
        "missing data behind a query",
        caused(PartitionDataMissing("a", [1]), AnalysisException("x")),
        FailureClass.PARTITION_DATA_MISSING,
    ),
    (
        "missing data before the network",
        caused(OSError("x"), PartitionDataMissing("a", [1])),
        FailureClass.PARTITION_DATA_MISSING,
    ),
]


@pytest.mark.parametrize(("error", "kind"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_weightiest_class_in_the_chain_counts(error, kind):
    found = diagnose(error)
    assert found.kind is kind
    assert found.kind.may_restart is (kind is not FailureClass.NON_RECOVERABLE)


def test_a_suppressed_context_is_no_cause():
    error = while_handling(ValueError("x"), Fenced("a", 1, 2))
    error.__suppress_context__ = True
    assert diagnose(error).kind is FailureClass.RECOVERABLE


def test_a_chain_that_bites_its_tail_ends():
    first, second = ValueError("x"), ValueError("y")
    first.__cause__, second.__cause__ = second, first
    assert list(causes(first)) == [first, second]


def test_the_first_missing_data_of_the_chain_is_named():
    found = diagnose(caused(RuntimeError("x"), PartitionDataMissing("orders", [3]), PartitionDataMissing("a", [1])))
    assert (found.missing.stage, found.missing.partitions) == ("orders", (3,))
    assert diagnose(ValueError("x")).missing is None


def test_every_terminal_error_ends_the_run():
    terminal = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Terminal)]
    assert GateBlocked in terminal
    assert all(diagnose(Exception.__new__(kind)).kind is FailureClass.NON_RECOVERABLE for kind in terminal)


START = datetime(2026, 1, 1, tzinfo=UTC)


def failed(second, kind=FailureClass.RECOVERABLE, subject=None):
    return subject or f"v{second}", kind, START + timedelta(seconds=second)


def story(strategy, *failures):
    """What follows from each failure: whether there is a restart, after how many seconds, and the history then."""
    history, handlings = RestartHistory(strategy), []
    for failure in failures:
        restart, delay, history = handle_failure(*failure, history)
        handlings.append((restart, delay.total_seconds(), history))
    return handlings


def restarts(handlings):
    return [restart for restart, _, _ in handlings]


def delays(handlings):
    return [delay for _, delay, _ in handlings]


def counts(handlings):
    return [history.restarts for _, _, history in handlings]


def test_a_failure_before_the_planned_restart_is_no_restart_of_its_own():
    strategy = made("exponential-delay", jitter=0.0, initial=timedelta(seconds=5))
    handlings = story(strategy, failed(0), failed(3), failed(9))
    assert delays(handlings) == [5, 2, 7.5]
    assert counts(handlings) == [1, 1, 2]


def test_a_merged_failure_of_which_no_history_tells_waits_for_the_planned_restart():
    strategy = made("exponential-delay", jitter=0.0, initial=timedelta(seconds=5)).after_failure(START)[0]
    ((restart, delay, _),) = story(strategy, failed(3))
    assert (restart, delay) == (True, 2)


def test_a_failure_that_cannot_be_recovered_from_is_not_told_to_the_strategy():
    strategy = made("exponential-delay", jitter=0.0, initial=timedelta(seconds=5))
    handlings = story(strategy, failed(0), failed(3, FailureClass.NON_RECOVERABLE))
    assert restarts(handlings) == [True, False]
    assert handlings[1][2] == handlings[0][2]
    assert counts(handlings) == [1, 1]


@pytest.mark.parametrize(
    ("strategy", "allowed"),
    [(made("none"), 0), (made("fixed-delay", attempts=1), 1), (made("fixed-delay", attempts=2), 2)],
)
def test_a_failure_that_the_strategy_refuses_is_counted_as_no_restart(strategy, allowed):
    handlings = story(strategy, failed(0), failed(5, FailureClass.ENVIRONMENT))
    assert restarts(handlings) == [allowed > 0, allowed > 1]
    assert counts(handlings)[-1] == allowed


def test_missing_data_is_computed_again_at_once_and_costs_no_restart():
    missing = [failed(second, FailureClass.PARTITION_DATA_MISSING, "a") for second in range(3)]
    handlings = story(made("fixed-delay", attempts=1), *missing, failed(4), failed(5))
    assert (restarts(handlings[:3]), delays(handlings[:3])) == ([True] * 3, [0] * 3)
    assert restarts(handlings[3:]) == [True, False]
    assert counts(handlings)[-1] == 1


def test_data_that_goes_missing_again_and_again_is_counted_in_the_end():
    missing = [failed(second, FailureClass.PARTITION_DATA_MISSING, "a") for second in range(5)]
    handlings = story(made("fixed-delay", attempts=1), *missing)
    assert delays(handlings) == [0, 0, 0, 1, 0]
    assert counts(handlings)[3] == 1


def test_a_strategy_that_never_restarts_does_not_restart_for_missing_data():
    assert restarts(story(made("none"), failed(0, FailureClass.PARTITION_DATA_MISSING))) == [False]


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
