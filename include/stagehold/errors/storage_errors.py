"""Errors: a disk, folder or bucket does not take or give what it should."""

from __future__ import annotations

from enum import StrEnum

from stagehold.errors.base import StageholdError, Transient


class StorageProblem(StrEnum):
    """What is wrong with a place where something is kept."""

    FULL = "full"
    DENIED = "denied"  # it is read-only, or somebody else's, or the credentials for it have run out
    BROKEN = "broken"  # a file where a folder should be, or a disk that gives errors

    @property
    def remedy(self) -> str:
        return _REMEDIES[self]


_REMEDIES = {
    StorageProblem.FULL: "Make room on its disk, or raise its quota",
    StorageProblem.DENIED: "Let the user that runs Stagehold (and its Spark server) write there: mount it for writing, "
    "and mend owner and permissions; for a bucket, see that its credentials are valid and may write",
    StorageProblem.BROKEN: "See that its disk answers, and that nothing but folders leads there",
}


class StorageError(StageholdError):
    """A place where something is kept does not take it or does not give it back."""


class StorageUnusable(StorageError, Transient):
    """``place`` is a path or an address, or several of which one is meant."""

    def __init__(self, place: str, problem: StorageProblem, reason: str) -> None:
        self.place, self.problem, self.reason = place, problem, reason
        super().__init__(
            f"{place} cannot be used: {reason.rstrip('.')}. Nothing half written is ever read, and what was recorded "
            f"stays safe. {problem.remedy}; then run the command again, or `stagehold resume` for a run that had begun."
        )
