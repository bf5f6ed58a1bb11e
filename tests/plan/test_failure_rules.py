"""Every rule with the error it was written for, as that error really reads."""

from __future__ import annotations

import errno

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, UnknownException

from stagehold.errors import (
    Fenced,
    GateBlocked,
    LeaseLost,
    LeaseNotFreed,
    LedgerUnavailable,
    PartitionDataMissing,
    RestartRefused,
    SessionClosed,
    SparkUnavailable,
)
from stagehold.model.records import FailureClass
from stagehold.model.spec import FailureDeclaration
from stagehold.plan.failure import diagnose
from stagehold.plan.failure_rules import RULES, WORKER_LOST, rules_of

TERMINAL, ENVIRONMENT = FailureClass.NON_RECOVERABLE, FailureClass.ENVIRONMENT
MISSING, RECOVERABLE = FailureClass.PARTITION_DATA_MISSING, FailureClass.RECOVERABLE

STAGE_FAILED = (
    "(org.apache.spark.SparkException) Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times, most recent failure: "
    "Lost task 3.3 in stage 5.0 (TID 41) (127.0.0.3 executor 1): "
)

# error -> rule, class
TABLE = [
    (Fenced("a", 1, 2), "fenced", TERMINAL),
    (GateBlocked("a", {0: "nulls"}), "gate", TERMINAL),
    (RestartRefused("a", "enough"), "terminal", TERMINAL),
    (LeaseNotFreed("a", "somebody", None, 60), "lease_wait", TERMINAL),
    (AnalysisException("[UNRESOLVED_COLUMN.WITH_SUGGESTION] x", errorClass="UNRESOLVED_COLUMN.WITH_SUGGESTION"), "query_refused", TERMINAL),
    (PartitionDataMissing("a", [1]), "partition_data_missing", MISSING),
    (OSError(errno.ENOSPC, "No space left on device"), "disk_full", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.io.IOException: No space left on device"), "disk_full", ENVIRONMENT),
    (MemoryError(), "out_of_memory", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.lang.OutOfMemoryError: Java heap space"), "out_of_memory", ENVIRONMENT),
    (
        UnknownException("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes.", errorClass="UNABLE_TO_ACQUIRE_MEMORY"),
        "out_of_memory",
        ENVIRONMENT,
    ),
    (
        UnknownException(STAGE_FAILED + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost"),
        "executor_lost",
        ENVIRONMENT,
    ),
    (
        UnknownException(STAGE_FAILED + "org.apache.hadoop.fs.s3a.AWSStatus503Exception: (Service: S3, Status Code: 503): SlowDown"),
        "storage_throttled",
        ENVIRONMENT,
    ),
    (SparkUnavailable("nobody answers"), "spark_gone", ENVIRONMENT),
    (SessionClosed("INVALID_HANDLE.SESSION_CLOSED"), "spark_gone", ENVIRONMENT),
    (LedgerUnavailable("sqlite:///ledger.db", "database is locked"), "ledger_unavailable", ENVIRONMENT),
    (RuntimeError("sqlite3.OperationalError: database is locked"), "database_locked", ENVIRONMENT),
    (LeaseLost("a", 1, "outage"), "lease", ENVIRONMENT),
    (ConnectionRefusedError(111, "Connection refused"), "connection", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.net.ConnectException: Connection refused"), "connection", ENVIRONMENT),
    (SparkConnectGrpcException("StatusCode.UNAVAILABLE: failed to connect"), "connection", ENVIRONMENT),
    (PermissionError(13, "Permission denied"), "system", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.lang.ArithmeticException: / by zero"), "anything_else", RECOVERABLE),
    (ValueError("x"), "anything_else", RECOVERABLE),
]


@pytest.mark.parametrize(("error", "rule", "kind"), TABLE, ids=[f"{row[1]}-{type(row[0]).__name__}" for row in TABLE])
def test_an_error_is_classified_by_its_rule(error, rule, kind):
    found = diagnose(error)
    assert (found.rule.name, found.kind) == (rule, kind)


def test_every_rule_has_an_example():
    assert {rule.name for rule in RULES} - {"transient"} == {row[1] for row in TABLE}
    assert WORKER_LOST not in {rule.name for rule in RULES}  # no error shows it


TRACEBACK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "jobs/tpch.py", line 7, in parse
jobs.errors.BadInput: line 4 has no date
"""


@pytest.mark.parametrize(
    ("declared", "error", "expected"),
    [
        ({"error": "builtins:ValueError", "kind": TERMINAL}, ValueError("x"), ("failures[1]", TERMINAL)),
        ({"error": "builtins:ArithmeticError", "kind": TERMINAL}, ZeroDivisionError("x"), ("failures[1]", TERMINAL)),
        ({"error": "jobs.errors:BadInput", "kind": TERMINAL}, PythonException(TRACEBACK), ("failures[1]", TERMINAL)),
        ({"error": "errors:BadInput", "kind": TERMINAL}, PythonException(TRACEBACK), ("anything_else", RECOVERABLE)),
        ({"text": "quota exceeded", "kind": ENVIRONMENT}, RuntimeError("Quota exceeded for today"), ("failures[1]", ENVIRONMENT)),
        ({"error": "builtins:ValueError", "text": "quota", "kind": ENVIRONMENT}, ValueError("x"), ("anything_else", RECOVERABLE)),
        ({"text": "no space left", "kind": TERMINAL}, OSError(errno.ENOSPC, "No space left on device"), ("failures[1]", TERMINAL)),
        ({"text": "blocked", "kind": RECOVERABLE}, GateBlocked("a", {0: "x"}), ("failures[1]", RECOVERABLE)),
        ({"text": ".*", "kind": RECOVERABLE}, Fenced("a", 1, 2), ("fenced", TERMINAL)),
    ],
)
def test_the_authors_rules_come_first(declared, error, expected):
    found = diagnose(error, rules_of([FailureDeclaration(**declared)]))
    assert (found.rule.name, found.kind) == expected


def test_the_first_of_the_authors_rules_that_fits_wins():
    rules = rules_of([FailureDeclaration(text="no such", kind=TERMINAL), FailureDeclaration(error="builtins:Exception", kind=ENVIRONMENT)])
    assert diagnose(ValueError("x"), rules).rule.name == "failures[2]"
