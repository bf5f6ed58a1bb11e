"""Errors: a region of a run does not start, or not to its end; work on a region is somebody else's, or may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from stagehold.errors.base import StageholdError, Terminal, Transient


class RunError(StageholdError):
    """A region of a run does not start, not again, or not to its end."""


class RestartRefused(RunError, Terminal):
    """An attempt was killed, and the pipeline's restart strategy allows no further one."""

    def __init__(self, region: str, reason: str) -> None:
        self.region, self.reason = region, reason
        super().__init__(
            f"The last attempt of {region} ended without a word (killed, or its machine was lost), and it is not "
            f"restarted: {reason}. What it had committed is kept, and what was recorded stays safe to read. "
            "`stagehold resume` goes on from there."
        )


class ProcessTerminated(RunError, Transient):
    """The process of an attempt was told to end, and nobody had asked for the end of the task or of the run."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(
            f"The process that worked on {subject} was told to end (SIGTERM), which nobody had asked for: its pod was "
            "evicted, its machine drained, or Airflow had lost sight of it. What is consumable is kept, and the next "
            "try goes on from there. If there is none, `stagehold resume` does."
        )


class ProcessLost(RunError, Transient):
    """The process of one of several attempts that go on side by side ended without a word."""

    def __init__(self, subject: str, exit_code: int | None) -> None:
        self.subject, self.exit_code = subject, exit_code
        ended = f"was killed (signal {-exit_code})" if exit_code and exit_code < 0 else "ended without a word"
        super().__init__(f"The process that worked on {subject} {ended}. What is consumable is kept.")


class ProcessFailed(RunError, Terminal):
    """The process of one of several attempts that go on side by side ended with an error that is not Stagehold's."""

    def __init__(self, subject: str, trace: str) -> None:
        self.subject, self.trace = subject, trace
        super().__init__(
            f"The process that worked on {subject} ended with an error that Stagehold did not expect. What is "
            f"consumable is kept, and `stagehold resume` goes on from there.\n{trace.rstrip()}"
        )


class InputsNeverCame(RunError, Terminal):
    """An eager task waited for partitions until its time was over, or the run had failed and nobody tried again."""

    def __init__(self, region: str, missing: Mapping[str, Sequence[int]]) -> None:
        self.region, self.missing = region, missing
        named = "; ".join(f"{stage} {', '.join(map(str, partitions))}" for stage, partitions in missing.items())
        super().__init__(
            f"Region {region} waited in vain for partitions that it reads: {named}. Nothing of it was run, and "
            "nothing is lost. See why they were not computed, then run `stagehold resume`, or press Resume on the "
            "run's page."
        )


class InputsNotReady(RunError, Transient):
    """A region was started although partitions that it reads were never consumable;
    there is nothing that could be healed.
    """

    def __init__(self, region: str, missing: Mapping[str, Sequence[int]]) -> None:
        self.region, self.missing = region, missing
        named = "; ".join(f"{stage} {', '.join(map(str, partitions))}" for stage, partitions in missing.items())
        super().__init__(
            f"Region {region} reads partitions that were never consumable for this interval: {named}. Nothing of it "
            f"was run. Run the whole pipeline: `stagehold resume`, or Resume on the run's page."
        )


class EarlierMissing(RunError, Terminal):
    """A stage goes on with what an earlier interval kept, and that interval has not run, or not to its end."""

    def __init__(self, pipeline: str, stage: str, interval: str, reason: str) -> None:
        self.pipeline, self.stage, self.interval, self.reason = pipeline, stage, interval, reason
        super().__init__(
            f"{stage} {reason}. Nothing of it was computed, and what was recorded stays safe to read. Run that "
            f"interval, `stagehold run {pipeline} --interval {interval}` or a backfill of it, and then this one. "
            "To leave it out on purpose, begin this one with a savepoint of an earlier interval: `--restore`; "
            f"or say with which interval the state of {stage} begins: `state_begins`."
        )


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
