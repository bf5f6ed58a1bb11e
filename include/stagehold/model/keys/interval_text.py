"""A text that names its interval: `day=${interval.start:%Y-%m-%d}` is `day=2026-11-26` for that day's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

VARIABLE = re.compile(r"\$\{interval(?:\.(?P<edge>start|end):(?P<form>[^{}]+))?\}")
FORMS = "${interval}, or ${interval.start:%Y-%m-%d} in any form that Python's strftime knows, or ${interval.end:...}"
UNFIT = re.compile(r"[*?\[\]{}/\\'\"`;]|\.\.")


class IntervalUnfit(ValueError):
    """An interval's key cannot stand in a text."""


@dataclass(frozen=True)
class IntervalTimes:
    """A key and its time: from ``start`` on, before ``end``. A key of free text has neither, and the last may be open.

    Times are in UTC, as in keys.
    """

    key: str
    start: datetime | None = None
    end: datetime | None = None

    def edge(self, name: str) -> datetime:
        """:raises IntervalUnfit: the interval has no such time."""
        if self.start is None:
            raise IntervalUnfit(f"the interval {self.key!r} is no date, so it has no {name}")
        found = self.start if name == "start" else self.end
        if found is None:
            raise IntervalUnfit(f"the interval {self.key!r} has no end, as the pipeline has no schedule")
        return found.astimezone(UTC)


def names_interval(text: str) -> bool:
    return VARIABLE.search(text) is not None


def of_any_interval(text: str) -> str:
    """The text as a pattern of paths that all intervals have."""
    return VARIABLE.sub(lambda found: "/".join("*" for _ in (found["form"] or "").split("/")), text)


def of_interval(text: str, times: IntervalTimes) -> str:
    """``text`` for an interval.

    :raises IntervalUnfit: the key has not what the text asks for, or would mean something else in a path or a query.
    """

    def value(found: re.Match[str]) -> str:
        if found["form"] is not None:
            return times.edge(found["edge"]).strftime(found["form"])
        if UNFIT.search(times.key):
            raise IntervalUnfit(f"the interval {times.key!r} cannot be a part of a path or a query")
        return times.key

    return VARIABLE.sub(value, text)
