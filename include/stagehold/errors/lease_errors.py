"""Errors: work on a region is somebody else's, or may be."""

from __future__ import annotations

from datetime import datetime

from stagehold.errors.base import StageholdError, Terminal, Transient


class LeaseError(StageholdError):
    """Work on a region is somebody else's, or may be: this attempt publishes and records nothing more."""


class LeaseHeld(LeaseError, Transient):
    """Another live attempt holds the lease of this region."""

    def __init__(self, region: str, holder: str, seconds_left: float) -> None:
        self.region, self.holder, self.seconds_left = region, holder, seconds_left
        super().__init__(
            f"{region} is being worked on by {holder}; its lease ends in {seconds_left:.0f} s unless it is renewed. "
            "Wait for it to end, or stop that attempt, then run the command again."
        )


class LeaseLost(LeaseError, Transient):
    """A lease could not be renewed in time; nobody is known to have taken it, but somebody may have."""

    def __init__(self, region: str, epoch: int, reason: str) -> None:
        self.region, self.epoch, self.reason = region, epoch, reason
        super().__init__(
            f"Attempt with epoch {epoch} of {region} could not renew its lease before it ended: {reason} "
            "Everything recorded so far is safe; the attempt stopped and publishes nothing more. Run the command "
            "again to go on."
        )


class LeaseNotFreed(LeaseError, Terminal):
    """Another attempt had the region for longer than a newcomer may wait.
    ``since`` is when it began, None if nobody noted that.
    """

    def __init__(self, region: str, holder: str, since: datetime | None, waited: float) -> None:
        self.region, self.holder, self.since, self.waited = region, holder, since, waited
        begun = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else ""
        super().__init__(
            f"{region} is being worked on by {holder}{begun}. It was waited for for {waited:.0f} s, as long as "
            "STAGEHOLD_LEASE_WAIT_SECONDS allows. Nothing was computed and nothing is lost. "
            "Wait until that work has ended, or stop it, then run `stagehold resume`: it reuses what was made "
            "meanwhile."
        )


class Fenced(LeaseError, Terminal):
    """Another attempt took this region over, so this attempt must not publish or record anything.

    ``told_by`` is the table whose log said so; None when it was the ledger, which then knows the newer attempt.
    """

    def __init__(self, region: str, epoch: int, newer_epoch: int, told_by: str | None = None) -> None:
        self.region, self.epoch, self.newer_epoch, self.told_by = region, epoch, newer_epoch, told_by
        by = f"epoch {newer_epoch}" if newer_epoch != epoch else "another attempt with that epoch"
        next_step = (
            "The newer attempt goes on; there is nothing to do."
            if told_by is None
            else f"The log of {told_by} says so. If `stagehold status` shows that newer attempt, it goes on and "
            "there is nothing to do. If "
            "not, it worked with another ledger: see that only one ledger is used for this lake, then run the "
            "command again. The next attempt begins above the log's epoch and takes over what was committed."
        )
        super().__init__(
            f"Attempt with epoch {epoch} of {region} was fenced by {by}. Nothing it wrote after that is readable, "
            f"and nothing is lost. {next_step}"
        )
