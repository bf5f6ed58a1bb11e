"""What the failure rules ask about one error, wherever it was raised:
in this process, in Spark's server, or in a Python worker, of which only Python's text of the error comes back.
"""

from __future__ import annotations

import builtins
import re
import sys
from dataclasses import dataclass

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


BEGIN = "Traceback (most recent call last):"
FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$')
RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
STATE_BEHIND = re.compile(r"\s*SQLSTATE: \w{5}\s*$")  # Spark puts it behind the text


@dataclass(frozen=True)
class TracedFrame:
    """A line of code that was being run."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class RaisedError:
    """The error that came out: its class as Python names it (``ValueError``, ``jobs.errors.BadInput``), and where it
    was raised.

    ``frames`` go from the outermost call inwards. Frames of the errors that it was raised from come before.
    """

    kind: str
    message: str
    frames: tuple[TracedFrame, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


def read_traceback(text: str) -> RaisedError | None:
    """The last error in a text of Python's, as it comes back from a worker of Spark; None if there is none."""
    before, found, last = text.rpartition(BEGIN)
    if not found:
        return None
    lines = last.splitlines()[1:]
    end = next((place for place, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    raised = RAISED.match(STATE_BEHIND.sub("", "\n".join(lines[end:])).strip())
    if raised is None:
        return None
    return RaisedError(raised["kind"], raised["message"] or "", (*_frames(before.splitlines()), *_frames(lines[:end])))


def _frames(lines: list[str]) -> tuple[TracedFrame, ...]:
    found = filter(None, map(FRAME.match, lines))
    return tuple(TracedFrame(match["file"], int(match["line"]), match["function"]) for match in found)
