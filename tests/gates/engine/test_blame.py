"""What is the suite's fault is an error of it; what is the machine's is what it always is."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.connect import NumberFormatException, SparkConnectGrpcException

from stagehold.errors import SessionClosed
from stagehold.gates.engine.asked_partitions import require_of_suite

pytestmark = pytest.mark.slow  # imports Great Expectations, which takes seconds


@pytest.mark.parametrize(
    "error",
    [
        AnalysisException("[UNRESOLVED_COLUMN] no such column"),
        NumberFormatException(
            "[CAST_INVALID_INPUT] 'x' is no number", errorClass="CAST_INVALID_INPUT", sql_state="22018"
        ),
        PySparkException("Job aborted due to stage failure: Task 0 failed: java.util.regex.PatternSyntaxException"),
        ValueError("quantiles have to be numbers"),
        KeyError("column"),
    ],
)
def test_an_error_that_would_come_again_is_an_error_of_the_suite(error):
    require_of_suite(error)


@pytest.mark.parametrize(
    "error",
    [
        SparkConnectGrpcException("connection refused"),
        PySparkException("Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited)"),
        PySparkException("Job aborted due to stage failure: java.io.IOException: No space left on device"),
        PySparkException("[OPERATION_CANCELED] somebody cancelled it"),
        ConnectionResetError("by peer"),
        OSError("No space left on device"),
        MemoryError(),
        SessionClosed("it was released"),
    ],
)
def test_an_error_that_may_not_come_again_is_raised(error):
    with pytest.raises(type(error)):
        require_of_suite(error)
