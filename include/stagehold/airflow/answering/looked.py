"""What an answer of the API was made from, and when that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum


class LookedInto(StrEnum):
    RECORD = "record"  # the ledger alone
    LAKE = "lake"  # and whether what it has on record is still there


@dataclass(frozen=True)
class Looked:
    """``at`` is None of the ledger, which is asked for each answer. ``problem`` is why the lake was not looked into,
    where it should have been.
    """

    into: LookedInto
    at: datetime | None = None
    problem: str | None = None


AS_RECORDED = Looked(LookedInto.RECORD)


def found_now() -> Looked:
    """In the lake."""
    return Looked(LookedInto.LAKE, datetime.now(UTC))
