"""Whose fault an error is that came up while a suite was judged."""

from __future__ import annotations

from pyspark.errors import PySparkException

from stagehold.errors import StageholdError
from stagehold.model.records import FailureClass
from stagehold.plan.restart.failure import diagnose
from stagehold.plan.restart.rules import ANYTHING

TASK_FAILED = "Job aborted due to stage failure"


def require_of_suite(error: Exception) -> None:
    """Let pass what says that an expectation cannot be judged, which is so whoever tries it again.

    :raises Exception: the error itself, if the server, an executor, the store or a cancellation is to blame.
    """
    if isinstance(error, PySparkException):
        found = diagnose(error)
        of_a_row = found.rule.name == ANYTHING and TASK_FAILED in str(error)  # as a pattern that cannot be compiled is
        of_suite = found.kind is FailureClass.NON_RECOVERABLE or of_a_row
    else:
        of_suite = not isinstance(error, StageholdError | OSError | MemoryError)
    if not of_suite:
        raise error
