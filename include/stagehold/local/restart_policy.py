"""When a service that ended is started again, and when no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RestartPolicy:
    """The n-th crash within ``window`` seconds waits for the n-th delay; one more than there are delays is the last.

    A service that was never ready gets ``first_tries`` starts only: what keeps it from starting will not go away by
    itself.
    """

    delays: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 15.0)
    window: float = 120.0
    first_tries: int = 2

    def delay(self, crashes: Sequence[float], now: float, *, was_ready: bool) -> float | None:
        """Seconds to wait before the next start; None to give up.

        :param crashes: when the service ended, the present time included, on the clock of ``now``.
        """
        if not was_ready and len(crashes) >= self.first_tries:
            return None
        recent = sum(now - crash < self.window for crash in crashes)
        return self.delays[recent - 1] if 0 < recent <= len(self.delays) else None
