"""How many partitions the next wave takes, and why; which of them share a Spark task; and how long a wave should last:
as declared, or so that commits and lost work together cost least.

A wave of length T costs C, a commit and what is fixed in it, and a failure loses T/2 on average. With one failure every
M seconds of work that is least at T = sqrt(2 C M): Young's formula, which Daly refined for failures almost as frequent
as commits.
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
RECENT = 3  # waves before the last one that count, so that what Spark's own start took is soon forgotten
ALIKE = 0.25  # of a wave's partitions: of a wave whose size differs by less nobody can tell noise from cost
QUICKEST = 0.001  # seconds; no wave is taken to be quicker, whatever a clock says
# What a Spark task writes at most, if that is several partitions: so much, and for so long. Beyond that there are tasks
# enough to keep all cores busy, and little is lost with one of them.
TASK_BYTES, TASK_SECONDS = 64 * 1024 * 1024, 1.0
# Into a bucket, each task makes ten calls besides those for its files, which take half a second in most stores.
TASK_SECONDS_IN_A_BUCKET = 10.0
FILE_BYTES = 64 * 1024  # written in the time that it takes to begin and to end a file


WaveSize = tuple[int, str]  # partitions of a wave, none only if none remain; and why there are so many
TimedWave = tuple[int, float, float]  # partitions of a wave; the seconds, and the bytes of files, that it took


@dataclass(frozen=True)
class WaveCost:
    """What a wave of a stage takes: ``fixed`` seconds however few partitions it has, as to read inputs that all of them
    need; and ``each`` seconds, and ``bytes`` of files, for each partition.
    """

    fixed: float
    each: float
    bytes: float

    @classmethod
    def of(cls, waves: Sequence[TimedWave]) -> WaveCost:
        """The line through the last of these waves that fits those before it best.

        Nothing is fixed as long as all waves have about the same size. Each wave of another size lets a partition cost
        half of the least average once more, and not less: a first wave takes longer than a later one would.
        """
        (partitions, seconds, size), *earlier = reversed(waves)
        average = max(seconds, QUICKEST) / partitions
        others = [wave for wave in earlier[:RECENT] if abs(wave[0] - partitions) >= ALIKE * partitions]
        apart = [(more - partitions, longer - seconds) for more, longer, _ in others]
        spread = sum(more * more for more, _ in apart)
        slope = sum(more * longer for more, longer in apart) / spread if spread else average
        least = min([average, *(max(longer, QUICKEST) / more for more, longer, _ in others)])
        each = min(max(slope, least / GROWTH ** len(others)), average)
        return cls((average - each) * partitions, each, size / partitions)

    def partitions_in(self, seconds: float) -> int:
        """The partitions of a wave that lasts so long."""
        return int(max(0.0, seconds - self.fixed) / max(self.each, QUICKEST))


@dataclass(frozen=True)
class WaveSizer:
    """Aims at waves that last about the interval: longer ones lose more work to a kill, shorter ones cost overhead.

    :param slots: twice the tasks that Spark runs side by side; a smaller wave would only idle them.
    :param known: what waves of this stage took in an earlier run, None if it never ran.
    :param undivided: the stage costs the same however few partitions it computes, so one wave takes all.
    :param task_seconds: how long a Spark task lasts at most, if it writes several partitions.
    """

    interval: WaveInterval
    slots: int
    known: WaveCost | None = None
    undivided: bool = False
    task_seconds: float = TASK_SECONDS

    def first(self, remaining: int) -> WaveSize:
        if self.undivided:
            return remaining, "all at once: its inputs are computed along with it and every partition needs all of them"
        if not self.known:
            return min(remaining, self.slots), "a first small wave: it has not been timed yet"
        return self._of_length(remaining, self.known, None, most=remaining)

    def following(self, remaining: int, waves: Sequence[TimedWave], commit_seconds: float) -> WaveSize:
        """The wave after these, of one attempt. Without earlier timings waves grow slowly, unless all that remains fits
        in with ease; faster as long as they are far shorter than wanted.

        :param commit_seconds: how much of the last one's time went into measuring, judging, publishing and recording.
        """
        partitions, cost = waves[-1][0], WaveCost.of(waves)
        one_more = max(commit_seconds, cost.fixed)
        wanted = self.interval.seconds(one_more)
        known = self.known.partitions_in(wanted) if self.known else 0
        easy = cost.partitions_in(wanted / GROWTH)  # even if they should take twice as long
        grown = max(partitions * GROWTH, known, min(partitions * FAST_GROWTH, easy))
        return self._of_length(remaining, cost, one_more, most=remaining if remaining <= easy else grown)

    def task_starts(self, recorded: Mapping[int, int | None], cost: WaveCost | None) -> tuple[int, ...]:
        """The lowest partitions of the Spark tasks that are to write these partitions, ascending: small ones share a
        task. Each has a task of its own as long as nothing is known.

        :param recorded: the bytes of a partition when it was recorded last, None if it never was.
        :param cost: of the waves before.
        """
        cost = cost or self.known
        if cost is None:
            return tuple(sorted(recorded))
        known = {partition: recorded[partition] for partition in sorted(recorded)}
        sizes = {partition: FILE_BYTES + (cost.bytes if size is None else size) for partition, size in known.items()}
        whole, busy = sum(sizes.values()), cost.each * len(sizes) * self.slots / 2
        tasks = min(len(sizes), max(self.slots, ceil(whole / TASK_BYTES), ceil(busy / self.task_seconds)))
        starts: dict[int, int] = {}
        for (partition, size), end in zip(sizes.items(), accumulate(sizes.values()), strict=True):
            starts.setdefault(int((end - size / 2) * tasks / whole), partition)
        return tuple(starts.values())

    def _of_length(self, remaining: int, cost: WaveCost, one_more: float | None, *, most: int) -> WaveSize:
        wanted = self.interval.seconds(one_more)
        room = max(wanted - cost.fixed, QUICKEST)  # of a wave, for its own partitions
        waves = max(1, ceil((remaining * cost.each - LONGER * wanted) / room))
        size = min(remaining, max(self.slots, min(ceil(remaining / waves), most)))
        lasts = f"about {cost.fixed + size * cost.each:.1f} s of wanted {wanted:.1f} s"
        fixed = f", {cost.fixed:.1f} s of it however few there are" if cost.fixed >= 0.05 else ""
        return size, f"{lasts} ({self.interval.reason(one_more)}{fixed})"


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
        return f"auto: one more wave costs {_cost(commit_seconds):.2f} s ({kind}), {history}"

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
