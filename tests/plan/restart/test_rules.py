"""Every rule with the error it was written for, as that error really reads."""

from __future__ import annotations

import errno

import pyarrow.lib  # noqa: F401  # its errors are known by their classes
import pytest
from pyspark.errors import PythonException
from pyspark.errors.exceptions.connect import (
    AnalysisException,
    SparkConnectGrpcException,
    SparkException,
    UnknownException,
)

from stagehold.errors import (
    CallStalled,
    CheckpointsFailed,
    Fenced,
    FunctionFailed,
    GateBlocked,
    LeaseLost,
    LeaseNotFreed,
    LedgerCrowded,
    LedgerUnavailable,
    PartitionDataMissing,
    ProcessTerminated,
    RestartRefused,
    SessionClosed,
    SparkMisconfigured,
    SparkUnavailable,
    StageFailed,
)
from stagehold.model.records import FailureClass
from stagehold.plan.restart.rules import RULES, WORKER_LOST, diagnose, rules_of
from stagehold.spec.settings.restart import FailureDeclaration

TERMINAL, ENVIRONMENT = FailureClass.NON_RECOVERABLE, FailureClass.ENVIRONMENT
MISSING, RECOVERABLE = FailureClass.PARTITION_DATA_MISSING, FailureClass.RECOVERABLE

STAGE_FAILED = (
    "(org.apache.spark.SparkException) Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times, most "
    "recent failure: Lost task 3.3 in stage 5.0 (TID 41) (127.0.0.3 executor 1): "
)


def spark_error(condition, state, stack="", kind=SparkException):
    return kind(
        f"[{condition}] x SQLSTATE: {state}",
        errorClass=condition,
        messageParameters={},
        sql_state=state,
        server_stacktrace=stack,
    )


def written(cause):
    """Spark's kind of errors with the server's stack in the text, as Connect gives them."""

    def kind(text, **facts):
        return SparkException(
            f"{text}\n\nJVM stacktrace:\norg.apache.spark.SparkException\nCaused by: {cause}", **facts
        )

    return kind


def raised(line):
    """What comes over Connect of an error in a Python worker."""
    return PythonException(
        "An exception was thrown from the Python worker: Traceback (most recent call last):\n"
        f'  File "jobs/tpch.py", line 7, in parse\n    give("OutOfMemoryError, SlowDown")\n{line}\n SQLSTATE: 38000'
    )


def stage_failed(kind, cause):
    failed = kind(stage="a", partitions=[0], problem="x", place="jobs/a.py:1, in a", trace="")
    failed.__cause__ = cause
    return failed


def several(*failures):
    """What comes over Connect when parts of one query fail side by side."""
    listed = "".join(f"\n  {number}. {text}" for number, text in enumerate(failures, 1))
    return SparkException(
        f"[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures ({len(failures)}) in stage materialization: "
        f"{listed} SQLSTATE: XX000",
        errorClass="STAGE_MATERIALIZATION_MULTIPLE_FAILURES",
        messageParameters={"failureDetails": listed},
        sql_state="XX000",
        server_stacktrace="org.apache.spark.SparkException",
    )


FAILED_READ = "FAILED_READ_FILE.NO_HINT"
MALFORMED = (
    "SparkException\nCaused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING] x SQLSTATE: 22023"
)

CAST = "SparkNumberFormatException: [CAST_INVALID_INPUT] x SQLSTATE: 22018"

# error -> rule, class
TABLE = [
    (Fenced("a", 1, 2), "fenced", TERMINAL),
    (GateBlocked("a", {0: "nulls"}), "gate", TERMINAL),
    (RestartRefused("a", "enough"), "terminal", TERMINAL),
    (LeaseNotFreed("a", "somebody", None, 60), "lease_wait", TERMINAL),
    (spark_error("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", kind=AnalysisException), "user_query", TERMINAL),
    (spark_error("UNSUPPORTED_FEATURE", "0A000"), "user_query", TERMINAL),
    (AnalysisException("a condition of old, without a SQLSTATE"), "user_query", TERMINAL),
    (spark_error("CAST_INVALID_INPUT", "22018"), "user_data", TERMINAL),
    (
        spark_error("DIVIDE_BY_ZERO", "22012", "at java.lang.OutOfMemoryError, SlowDown, FetchFailed"),
        "user_data",
        TERMINAL,
    ),
    (spark_error("ARITHMETIC_OVERFLOW", "22003"), "user_data", TERMINAL),
    (spark_error("DUPLICATED_MAP_KEY", "23505"), "user_data", TERMINAL),
    (spark_error("SCALAR_SUBQUERY_TOO_MANY_ROWS", "21000"), "user_data", TERMINAL),
    (spark_error("USER_RAISED_EXCEPTION", "P0001"), "user_data", TERMINAL),
    (spark_error(FAILED_READ, "KD001", MALFORMED), "user_data", TERMINAL),
    (
        UnknownException(
            STAGE_FAILED + "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] x SQLSTATE: 22012"
        ),
        "user_data",
        TERMINAL,
    ),
    (spark_error(FAILED_READ, "KD001"), "file_unreadable", RECOVERABLE),
    (
        spark_error(FAILED_READ, "KD001", "Caused by: java.net.ConnectException: Connection refused"),
        "file_unreadable",
        RECOVERABLE,
    ),
    (spark_error("PATH_NOT_FOUND", "42K03", kind=AnalysisException), "file_unreadable", RECOVERABLE),
    (several(CAST, CAST), "user_data", TERMINAL),
    (several(str(raised("ValueError: x")), str(raised("ValueError: y"))), "user_function", TERMINAL),
    (several(str(raised("TimeoutError: x")), CAST), "connection", ENVIRONMENT),
    (raised("ValueError: connection to the truth"), "user_function", TERMINAL),
    (raised("jobs.errors.BadInput: line 4 has no date"), "user_function", TERMINAL),
    (raised("MemoryError"), "out_of_memory", ENVIRONMENT),
    (raised("pyarrow.lib.ArrowMemoryError: malloc of size 12 failed"), "out_of_memory", ENVIRONMENT),
    (raised("torch.OutOfMemoryError: CUDA"), "out_of_memory", ENVIRONMENT),
    (raised("ConnectionResetError: [Errno 104] x"), "connection", ENVIRONMENT),
    (raised("TimeoutError: x"), "connection", ENVIRONMENT),
    (raised("OSError: [Errno 28] No space left on device"), "disk_full", ENVIRONMENT),
    (raised("PermissionError: [Errno 13] x"), "storage_denied", ENVIRONMENT),
    (raised("botocore.exceptions.ClientError: An error occurred (SlowDown)"), "storage_throttled", ENVIRONMENT),
    (stage_failed(FunctionFailed, ValueError("x")), "user_function", TERMINAL),
    (stage_failed(FunctionFailed, TimeoutError("x")), "connection", ENVIRONMENT),
    (
        stage_failed(StageFailed, UnknownException(STAGE_FAILED + "java.lang.ArithmeticException: / by zero")),
        "anything_else",
        RECOVERABLE,
    ),
    (PartitionDataMissing("a", [1]), "partition_data_missing", MISSING),
    (OSError(errno.ENOSPC, "No space left on device"), "disk_full", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.io.IOException: No space left on device"), "disk_full", ENVIRONMENT),
    (MemoryError(), "out_of_memory", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.lang.OutOfMemoryError: Java heap space"), "out_of_memory", ENVIRONMENT),
    (
        UnknownException(
            "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes.", errorClass="UNABLE_TO_ACQUIRE_MEMORY"
        ),
        "out_of_memory",
        ENVIRONMENT,
    ),
    (
        UnknownException(
            STAGE_FAILED + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) "
            "Reason: worker lost"
        ),
        "executor_lost",
        ENVIRONMENT,
    ),
    (
        UnknownException(STAGE_FAILED + "org.apache.spark.SparkException: Checkpoint block rdd_7_0 not found! Either"),
        "executor_lost",
        ENVIRONMENT,
    ),
    (
        UnknownException(
            STAGE_FAILED + "org.apache.hadoop.fs.s3a.AWSStatus503Exception: (Service: S3, Status Code: 503): SlowDown"
        ),
        "storage_throttled",
        ENVIRONMENT,
    ),
    (ProcessTerminated("orders"), "terminated", ENVIRONMENT),
    (CallStalled("ExecutePlan", 600, "dumps/x"), "stalled", ENVIRONMENT),
    (SparkUnavailable("nobody answers"), "spark_gone", ENVIRONMENT),
    (SparkMisconfigured("spark:15002", "it does not accept the token", "Set it."), "terminal", TERMINAL),
    (SessionClosed("INVALID_HANDLE.SESSION_CLOSED"), "spark_gone", ENVIRONMENT),
    (
        UnknownException(
            STAGE_FAILED + "java.lang.RuntimeException: Stream '/artifacts/5c/pyfiles/project-1.zip' was not found."
        ),
        "session_gone",
        ENVIRONMENT,
    ),
    (LedgerUnavailable("sqlite:///ledger.db", "database is locked"), "ledger_unavailable", ENVIRONMENT),
    (LedgerCrowded("sqlite:///ledger.db", 90), "ledger_unavailable", ENVIRONMENT),
    (RuntimeError("sqlite3.OperationalError: database is locked"), "database_locked", ENVIRONMENT),
    (LeaseLost("a", 1, "outage"), "lease", ENVIRONMENT),
    (CheckpointsFailed(7, "checkpoint_expired", "too late", 0), "checkpoints", ENVIRONMENT),
    (ConnectionRefusedError(111, "Connection refused"), "connection", ENVIRONMENT),
    (UnknownException(STAGE_FAILED + "java.net.ConnectException: Connection refused"), "connection", ENVIRONMENT),
    (SparkConnectGrpcException("StatusCode.UNAVAILABLE: failed to connect"), "connection", ENVIRONMENT),
    (PermissionError(13, "Permission denied"), "storage_denied", ENVIRONMENT),
    (OSError(errno.EROFS, "Read-only file system"), "storage_denied", ENVIRONMENT),
    (OSError("Generic LocalFileSystem error: x Permission denied (os error 13)"), "storage_denied", ENVIRONMENT),
    (OSError("Generic S3 error: <Code>AccessDenied</Code>"), "storage_denied", ENVIRONMENT),
    (OSError("AWS Error ACCESS_DENIED during HeadBucket operation"), "storage_denied", ENVIRONMENT),
    (OSError("Generic S3 error: <Code>ExpiredToken</Code>"), "storage_denied", ENVIRONMENT),
    (RuntimeError("An error occurred (InvalidAccessKeyId) when calling"), "storage_denied", ENVIRONMENT),
    (RuntimeError("Unable to locate credentials"), "storage_denied", ENVIRONMENT),
    (
        stage_failed(
            StageFailed,
            spark_error(
                "TASK_WRITE_FAILED",
                "58030",
                kind=written("java.io.IOException: Mkdirs failed to create file:/lake/x (exists=false)"),
            ),
        ),
        "storage_denied",
        ENVIRONMENT,
    ),
    (
        UnknownException(STAGE_FAILED + "java.io.FileNotFoundException: /lake/x (Read-only file system)"),
        "storage_denied",
        ENVIRONMENT,
    ),
    (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/lake/x"), "storage_broken", ENVIRONMENT),
    (OSError(errno.EIO, "Input/output error"), "storage_broken", ENVIRONMENT),
    (
        UnknownException(STAGE_FAILED + "java.io.FileNotFoundException: /lake/x (Input/output error)"),
        "storage_broken",
        ENVIRONMENT,
    ),
    (BrokenPipeError(errno.EPIPE, "Broken pipe"), "connection", ENVIRONMENT),
    (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "system", ENVIRONMENT),
    (LedgerUnavailable("postgresql://h/d", "No space left on device"), "ledger_unavailable", ENVIRONMENT),
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
        ({"error": "builtins:ValueError", "kind": RECOVERABLE}, raised("ValueError: x"), ("failures[1]", RECOVERABLE)),
        (
            {"error": "builtins:ArithmeticError", "kind": RECOVERABLE},
            raised("ZeroDivisionError: x"),
            ("failures[1]", RECOVERABLE),
        ),
        (
            {"text": "division", "kind": RECOVERABLE},
            raised("ZeroDivisionError: Division"),
            ("failures[1]", RECOVERABLE),
        ),
        ({"error": "builtins:ArithmeticError", "kind": TERMINAL}, ZeroDivisionError("x"), ("failures[1]", TERMINAL)),
        ({"error": "jobs.errors:BadInput", "kind": TERMINAL}, PythonException(TRACEBACK), ("failures[1]", TERMINAL)),
        ({"error": "errors:BadInput", "kind": ENVIRONMENT}, PythonException(TRACEBACK), ("user_function", TERMINAL)),
        (
            {"text": "quota exceeded", "kind": ENVIRONMENT},
            RuntimeError("Quota exceeded for today"),
            ("failures[1]", ENVIRONMENT),
        ),
        (
            {"error": "builtins:ValueError", "text": "quota", "kind": ENVIRONMENT},
            ValueError("x"),
            ("anything_else", RECOVERABLE),
        ),
        (
            {"text": "no space left", "kind": TERMINAL},
            OSError(errno.ENOSPC, "No space left on device"),
            ("failures[1]", TERMINAL),
        ),
        ({"text": "blocked", "kind": RECOVERABLE}, GateBlocked("a", {0: "x"}), ("failures[1]", RECOVERABLE)),
        ({"text": ".*", "kind": RECOVERABLE}, Fenced("a", 1, 2), ("fenced", TERMINAL)),
    ],
)
def test_the_authors_rules_come_first(declared, error, expected):
    found = diagnose(error, rules_of([FailureDeclaration(**declared)]))
    assert (found.rule.name, found.kind) == expected


def test_the_first_of_the_authors_rules_that_fits_wins():
    rules = rules_of(
        [
            FailureDeclaration(text="no such", kind=TERMINAL),
            FailureDeclaration(error="builtins:Exception", kind=ENVIRONMENT),
        ]
    )
    assert diagnose(ValueError("x"), rules).rule.name == "failures[2]"
