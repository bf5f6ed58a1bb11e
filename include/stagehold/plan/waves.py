"""How many partitions the next wave takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

GROWTH = 2  # a wave at most doubles, so one lucky measurement cannot put a whole stage at risk


@dataclass(frozen=True)
class WaveSizer:
    """Aims at waves that last about ``interval``: longer ones lose more work to a kill, shorter ones cost overhead.

    ``slots`` tasks run side by side in Spark, so a smaller wave would only idle them.
    """

    interval: timedelta
    slots: int

    def first(self, remaining: int) -> int:
        return min(remaining, self.slots)

    def following(self, size: int, seconds: float, remaining: int) -> int:
        """:param size: partitions in the wave before, which took ``seconds``."""
        fitting = ceil(size * self.interval.total_seconds() / max(seconds, 0.001))
        return min(remaining, max(self.slots, min(fitting, size * GROWTH)))
