"""Reads Python's text of an error, which is all that comes back if the error was raised in a worker of Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass

BEGIN = "Traceback (most recent call last):"
FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$')
RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
STATE = re.compile(r"\s*SQLSTATE: \w{5}\s*$")  # Spark puts it behind the text


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
    """The last error in ``text``; None if there is none."""
    before, found, last = text.rpartition(BEGIN)
    if not found:
        return None
    lines = last.splitlines()[1:]
    end = next((place for place, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    raised = RAISED.match(STATE.sub("", "\n".join(lines[end:])).strip())
    if raised is None:
        return None
    return RaisedError(raised["kind"], raised["message"] or "", (*_frames(before.splitlines()), *_frames(lines[:end])))


def _frames(lines: list[str]) -> tuple[TracedFrame, ...]:
    found = filter(None, map(FRAME.match, lines))
    return tuple(TracedFrame(match["file"], int(match["line"]), match["function"]) for match in found)
