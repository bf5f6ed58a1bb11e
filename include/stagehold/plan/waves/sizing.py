"""How many partitions the next wave takes, and why; which of them share a Spark task; and how long a wave should last:
as declared, or so that commits and lost work together cost least.

A wave of length T costs one commit C, and a failure loses T/2 on average. With one failure every M seconds of work that
is least at T = sqrt(2 C M): Young's formula, which Daly refined for failures almost as frequent as commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, sqrt
from typing import Protocol

from stagehold.model.records import Attempt, AttemptState, FailureClass

GROWTH = 2  # a wave is at most so many times the one before, so one lucky measurement cannot put a whole stage at risk
FAST_GROWTH = 8  # the same, of waves that are far shorter than wanted
LONGER = 0.25  # of an interval: so much longer waves may last, if that makes one wave less
QUICKEST = 0.001  # seconds; no wave is taken to be quicker, whatever a clock says
# What a Spark task writes at most, if that is several partitions: so much, and for so long. Beyond that there are tasks
# enough to keep all cores busy, and little is lost with one of them.
TASK_BYTES, TASK_SECONDS = 64 * 1024 * 1024, 1.0
FILE_BYTES = 64 * 1024  # written in the time that it takes to begin and to end a file


WaveSize = tuple[int, str]  # partitions of a wave, none only if none remain; and why there are so many


@dataclass(frozen=True)
class PartitionCost:
    """What a partition of a stage takes, on average: a share of a wave's time, and bytes of files."""

    seconds: float
    bytes: float


@dataclass(frozen=True)
class WaveSizer:
    """Aims at waves that last about the interval: longer ones lose more work to a kill, shorter ones cost overhead.

    :param slots: twice the tasks that Spark runs side by side; a smaller wave would only idle them.
    :param known: what a partition of this stage took in earlier runs, None if it never ran.
    :param undivided: the stage costs the same however few partitions it computes, so one wave takes all.
    """

    interval: WaveInterval
    slots: int
    known: PartitionCost | None = None
    undivided: bool = False

    def first(self, remaining: int) -> WaveSize:
        if self.undivided:
            return remaining, "all at once: its inputs are computed along with it and every partition needs all of them"
        if not self.known:
            return min(remaining, self.slots), "a first small wave: it has not been timed yet"
        return self._of_length(remaining, self.known.seconds, None, most=remaining)

    def following(self, remaining: int, partitions: int, seconds: float, commit_seconds: float) -> WaveSize:
        """The wave after one of ``partitions`` that lasted so many ``seconds``. Without earlier timings waves grow
        slowly, unless all that remains fits in with ease; faster as long as they are far shorter than wanted.

        :param commit_seconds: how much of the time went into measuring, judging, publishing and recording.
        """
        each = max(seconds, QUICKEST) / partitions
        wanted = self.interval.seconds(commit_seconds)
        known = ceil(wanted / max(self.known.seconds, QUICKEST)) if self.known else 0
        easy = int(wanted / GROWTH / each)  # even if they should take twice as long
        grown = max(partitions * GROWTH, known, min(partitions * FAST_GROWTH, easy))
        return self._of_length(remaining, each, commit_seconds, most=remaining if remaining <= easy else grown)

    def task_starts(self, recorded: Mapping[int, int | None], cost: PartitionCost | None) -> tuple[int, ...]:
        """The lowest partitions of the Spark tasks that are to write these partitions, ascending: small ones share a
        task. Each has a task of its own as long as nothing is known.

        :param recorded: the bytes of a partition when it was recorded last, None if it never was.
        :param cost: of the wave before.
        """
        each = cost or self.known
        if each is None:
            return tuple(sorted(recorded))
        known = {partition: recorded[partition] for partition in sorted(recorded)}
        sizes = {partition: FILE_BYTES + (each.bytes if size is None else size) for partition, size in known.items()}
        whole, busy = sum(sizes.values()), each.seconds * len(sizes) * self.slots / 2
        tasks = min(len(sizes), max(self.slots, ceil(whole / TASK_BYTES), ceil(busy / TASK_SECONDS)))
        starts: dict[int, int] = {}
        for (partition, size), end in zip(sizes.items(), accumulate(sizes.values()), strict=True):
            starts.setdefault(int((end - size / 2) * tasks / whole), partition)
        return tuple(starts.values())

    def _of_length(self, remaining: int, each: float, commit_seconds: float | None, *, most: int) -> WaveSize:
        wanted = self.interval.seconds(commit_seconds)
        waves = max(1, ceil(remaining * each / wanted - LONGER))
        size = min(remaining, max(self.slots, min(ceil(remaining / waves), most)))
        reason = f"about {size * each:.1f} s of wanted {wanted:.1f} s ({self.interval.reason(commit_seconds)})"
        return size, reason


SHORTEST, LONGEST = 10.0, 600.0  # seconds; below, commits would crowd out the work; above, nobody wants to lose so much
ASSUMED_COMMIT_SECONDS = 1.0  # until one was measured
ASSUMED_WORK_SECONDS = 24 * 3600.0  # counted as done with one failure, so that a short history is not taken for a law


class WaveInterval(Protocol):
    """The wanted length of a wave."""

    def seconds(self, commit_seconds: float | None) -> float:
        """:param commit_seconds: what one more wave costs in this attempt, None before it was measured."""

    def reason(self, commit_seconds: float | None) -> str:
        """Why it is that long."""


@dataclass(frozen=True)
class DeclaredInterval:
    """The length that the pipeline declares."""

    declared: float

    def seconds(self, commit_seconds: float | None) -> float:  # noqa: ARG002
        return self.declared

    def reason(self, commit_seconds: float | None) -> str:  # noqa: ARG002
        return "as declared"


@dataclass(frozen=True)
class AdaptiveInterval:
    """A length that follows from how often attempts failed in how many seconds of work."""

    failures: int
    worked: float

    def seconds(self, commit_seconds: float | None) -> float:
        return min(max(sqrt(2 * _cost(commit_seconds) * self.seconds_between_failures), SHORTEST), LONGEST)

    def reason(self, commit_seconds: float | None) -> str:
        kind = "assumed" if commit_seconds is None else "measured"
        history = f"{self.failures} failures in {self.worked / 3600:.1f} h of recorded work"
        return f"auto: a commit costs {_cost(commit_seconds):.2f} s ({kind}), {history}"

    @property
    def seconds_between_failures(self) -> float:
        return (self.worked + ASSUMED_WORK_SECONDS) / (self.failures + 1)


def adaptive_interval(attempts: Sequence[Attempt]) -> AdaptiveInterval:
    """The length that follows from the recorded attempts of a pipeline.

    An attempt without an end that a newer one follows was killed, after work that nobody measured. An attempt that was
    cancelled, or that failed in a way that no other try can help, says nothing about how often work is lost.
    """
    worked = sum(_between(attempt) for attempt in attempts)
    return AdaptiveInterval(sum(map(_failed, attempts)) + _killed(attempts), worked)


def _cost(commit_seconds: float | None) -> float:
    return ASSUMED_COMMIT_SECONDS if commit_seconds is None else commit_seconds


def _between(attempt: Attempt) -> float:
    """The time between two moments, at least 0: clocks of two machines may disagree."""
    return max(0.0, (attempt.ended_at - attempt.started_at).total_seconds()) if attempt.ended_at else 0.0


def _failed(attempt: Attempt) -> bool:
    return attempt.state is AttemptState.FAILED and attempt.failure_class != FailureClass.NON_RECOVERABLE


def _killed(attempts: Iterable[Attempt]) -> int:
    newest: dict[tuple[str, str, str | None], int] = defaultdict(int)
    unended = [attempt for attempt in attempts if attempt.ended_at is None]
    for attempt in attempts:
        newest[_work_of(attempt)] = max(newest[_work_of(attempt)], attempt.epoch)
    return sum(attempt.epoch < newest[_work_of(attempt)] for attempt in unended)


def _work_of(attempt: Attempt) -> tuple[str, str, str | None]:
    return attempt.interval, attempt.region, attempt.share
