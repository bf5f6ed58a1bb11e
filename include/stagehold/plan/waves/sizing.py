"""How many partitions the next wave takes, and why."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from stagehold.plan.waves.interval import WaveInterval

GROWTH = 2  # a wave is at most so many times the one before, so one lucky measurement cannot put a whole stage at risk
LONGER = 0.25  # of an interval: so much longer waves may last, if that makes one wave less
QUICKEST = 0.001  # seconds; no wave is taken to be quicker, whatever a clock says


@dataclass(frozen=True)
class WaveSize:
    """``partitions`` is 0 only when none remain."""

    partitions: int
    reason: str


@dataclass(frozen=True)
class MeasuredWave:
    """A wave that has ended. ``commit_seconds`` of its ``seconds`` went into measuring, judging,
    publishing and recording.
    """

    partitions: int
    seconds: float
    commit_seconds: float


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
            return WaveSize(
                remaining, "all at once: its inputs are computed along with it and every partition needs all of them"
            )
        if not self.known:
            return WaveSize(min(remaining, self.slots), "a first small wave: it has not been timed yet")
        return self._of_length(remaining, self.known, None, most=remaining)

    def following(self, last: MeasuredWave, remaining: int) -> WaveSize:
        """What comes after ``last``. Without earlier timings it grows slowly,
        unless all that remains fits in with ease.
        """
        each = max(last.seconds, QUICKEST) / last.partitions
        wanted = self.interval.seconds(last.commit_seconds)
        known = ceil(wanted / self.known) if self.known else 0
        fits = each * remaining * GROWTH <= wanted
        return self._of_length(
            remaining, each, last.commit_seconds, most=remaining if fits else max(last.partitions * GROWTH, known)
        )

    def _of_length(self, remaining: int, each: float, commit_seconds: float | None, *, most: int) -> WaveSize:
        wanted = self.interval.seconds(commit_seconds)
        waves = max(1, ceil(remaining * each / wanted - LONGER))
        size = min(remaining, max(self.slots, min(ceil(remaining / waves), most)))
        reason = f"about {size * each:.1f} s of wanted {wanted:.1f} s ({self.interval.reason(commit_seconds)})"
        return WaveSize(size, reason)
