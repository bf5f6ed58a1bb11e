"""What somebody decides who has a run begin with a checkpoint or savepoint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ClaimMode(StrEnum):
    """Who owns a snapshot after a run has begun with it."""

    NO_CLAIM = "no_claim"  # the user goes on owning it; the run leaves it alone
    CLAIM = "claim"  # it becomes an ordinary checkpoint of the run, and is deleted when newer ones replace it


class CodeHandling(StrEnum):
    """What becomes of data in a snapshot that other code made than the stage has now."""

    RECOMPUTE = "recompute"
    KEEP = "keep"  # it counts, for this restore
    ACCEPT = "accept"  # it counts from now on, for every run

    @property
    def counts(self) -> bool:
        return self is not CodeHandling.RECOMPUTE


@dataclass(frozen=True)
class CodeChoice:
    """What becomes of the data of one stage, by its id, that code ``made_by`` has made; who said so, and why.

    Of what other code makes later it says nothing, so that an edit between two tries of a run is noticed.
    """

    stage: str
    handling: CodeHandling
    made_by: tuple[str, ...]
    said_by: str
    reason: str = ""
