"""A text that names its interval: `day=${interval.start:%Y-%m-%d}` is `day=2026-11-26` for that day's."""

from __future__ import annotations

import re
from datetime import UTC, datetime

VARIABLE = re.compile(r"\$\{interval(?:\.start:(?P<form>[^{}]+))?\}")
FORMS = "${interval}, or ${interval.start:%Y-%m-%d} in any form that Python's strftime knows"
UNFIT_FOR_PATHS = re.compile(r"[*?\[\]{}/\\]|\.\.")


class IntervalUnfit(ValueError):
    """An interval's key cannot stand in a text."""


def names_interval(text: str) -> bool:
    return VARIABLE.search(text) is not None


def of_interval(text: str, key: str, start: datetime | None) -> str:
    """``text`` for an interval; times are in UTC, as in keys.

    :raises IntervalUnfit: the key is no moment, or would mean something else in a path.
    """

    def value(found: re.Match[str]) -> str:
        if found["form"] is None:
            if UNFIT_FOR_PATHS.search(key):
                raise IntervalUnfit(f"the interval {key!r} cannot be a part of a path")
            return key
        if start is None:
            raise IntervalUnfit(f"the interval {key!r} is no date, so it has no {found[0]}")
        return start.astimezone(UTC).strftime(found["form"])

    return VARIABLE.sub(value, text)
