"""How many partitions the next wave takes, and why; and how long it should last: as declared, or so that commits and
lost work together cost least.

A wave of length T costs one commit C, and a failure loses T/2 on average. With one failure every M seconds of work that
is least at T = sqrt(2 C M): Young's formula, which Daly refined for failures almost as frequent as commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Protocol

from stagehold.model.records import Attempt, AttemptState, FailureClass

GROWTH = 2  # a wave is at most so many times the one before, so one lucky measurement cannot put a whole stage at risk
LONGER = 0.25  # of an interval: so much longer waves may last, if that makes one wave less
QUICKEST = 0.001  # seconds; no wave is taken to be quicker, whatever a clock says


WaveSize = tuple[int, str]  # partitions of a wave, none only if none remain; and why there are so many


@dataclass(frozen=True)
class WaveSizer:
    """Aims at waves that last about the interval: longer ones lose more work to a kill, shorter ones cost overhead.

    :param slots: tasks that Spark runs side by side; a smaller wave would only idle them.
    :param known: seconds of a partition of this stage in earlier waves, None if it never ran.
    :param undivided: the stage costs the same however few partitions it computes, so one wave takes all.
    """

    interval: WaveInterval
    slots: int
    known: float | None = None
    undivided: bool = False

    def first(self, remaining: int) -> WaveSize:
        if self.undivided:
            return remaining, "all at once: its inputs are computed along with it and every partition needs all of them"
        if not self.known:
            return min(remaining, self.slots), "a first small wave: it has not been timed yet"
        return self._of_length(remaining, self.known, None, most=remaining)

    def following(self, remaining: int, partitions: int, seconds: float, commit_seconds: float) -> WaveSize:
        """The wave after one of ``partitions`` that lasted so many ``seconds``. Without earlier timings waves grow
        slowly, unless all that remains fits in with ease.

        :param commit_seconds: how much of the time went into measuring, judging, publishing and recording.
        """
        each = max(seconds, QUICKEST) / partitions
        wanted = self.interval.seconds(commit_seconds)
        known = ceil(wanted / self.known) if self.known else 0
        fits = each * remaining * GROWTH <= wanted
        most = remaining if fits else max(partitions * GROWTH, known)
        return self._of_length(remaining, each, commit_seconds, most=most)

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
