"""Spark's one error of several: parts of a query that ran side by side failed before the first could stop the rest."""

from __future__ import annotations

import re

CONDITION = "STAGE_MATERIALIZATION_MULTIPLE_FAILURES"
_NUMBER = re.compile(r"^  \d+\. ", re.MULTILINE)


def failures_in(error: BaseException) -> tuple[str, ...]:
    """What each of them says, first its class; of any other error nothing."""
    asked = getattr(error, "getCondition", None)  # Spark's class of errors is not imported: planning works without it
    if asked is None or asked() != CONDITION:
        return ()
    details = (error.getMessageParameters() or {}).get("failureDetails", "")  # type: ignore[attr-defined]
    return tuple(text.strip() for text in _NUMBER.split(details)[1:])
