"""What the failure rules ask about one error, wherever it was raised:
in this process, in Spark's server, or in a Python worker.
"""

from __future__ import annotations

import builtins
import re
import sys
from dataclasses import dataclass

from stagehold.plan.restart.python_traceback import RaisedError, read_traceback

CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ")
STATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})\b")
# Spark's one error of several: parts of a query that ran side by side failed before the first could stop the rest.
SEVERAL_FAILURES = "STAGE_MATERIALIZATION_MULTIPLE_FAILURES"
NUMBER = re.compile(r"^  \d+\. ", re.MULTILINE)
WORKER_ERROR = "pyspark.errors.exceptions.base:PythonException"


@dataclass(frozen=True)
class ErrorFacts:
    """``classes`` are ``module:Class`` with all bases. ``conditions`` and ``states`` are Spark's names and SQLSTATEs of
    the error and of its causes inside the server.

    For an error from a Python worker, the classes and the text are those of the error that was raised there.
    """

    classes: frozenset[str]
    conditions: tuple[str, ...]
    states: tuple[str, ...]
    text: str


def facts_of(error: BaseException) -> ErrorFacts:
    classes = names_of(type(error))
    raised = raised_in_worker(error)
    if raised is not None:
        return ErrorFacts(classes | {WORKER_ERROR} | _raised_names(raised), (), (), str(raised))
    if not hasattr(error, "getCondition"):
        return ErrorFacts(classes, (), (), str(error))
    story = f"{error}\n{_asked(error, 'getStackTrace')}"
    conditions = (_asked(error, "getCondition"), *CONDITION.findall(story))
    states = (_asked(error, "getSqlState"), *STATE.findall(story))
    return ErrorFacts(classes, tuple(filter(None, conditions)), tuple(filter(None, states)), str(error))


def raised_in_worker(error: BaseException) -> RaisedError | None:
    """The error that Python code raised in a worker of Spark; of several at once the first."""
    if WORKER_ERROR in names_of(type(error)):
        return read_traceback(str(error))
    return next(filter(None, map(read_traceback, failures_in(error))), None)


def names_of(kind: type) -> frozenset[str]:
    return frozenset(f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__)


def _asked(error: BaseException, getter: str) -> str:
    """What an error's getter returns. Spark's class of errors is not imported: planning works without Spark."""
    found = getattr(error, getter, None)
    return str((found() if callable(found) else None) or "")


def _raised_names(raised: RaisedError) -> frozenset[str]:
    """Names of the classes that were raised. If this process knows a class, its bases are named as well."""
    module, _, name = raised.kind.rpartition(".")
    kind = getattr(sys.modules.get(module) if module else builtins, name, None)
    return names_of(kind) if isinstance(kind, type) else frozenset({f"{module or 'builtins'}:{name}"})


def failures_in(error: BaseException) -> tuple[str, ...]:
    """The text of each failure of `SEVERAL_FAILURES`, with its class first; none for any other error."""
    asked = getattr(error, "getCondition", None)  # Spark's class of errors is not imported: planning works without it
    if asked is None or asked() != SEVERAL_FAILURES:
        return ()
    details = (error.getMessageParameters() or {}).get("failureDetails", "")  # type: ignore[attr-defined]
    return tuple(text.strip() for text in NUMBER.split(details)[1:])
