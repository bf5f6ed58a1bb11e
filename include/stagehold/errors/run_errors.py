"""Errors: a region of a run does not start, or not to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
            "To leave it out on purpose, begin this one with a savepoint of an earlier interval: `--restore`."
        )
