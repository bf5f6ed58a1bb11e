"""Interrupts a call to Spark that makes no progress, once it is written down what everybody was doing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from stagehold.errors import CallStalled
from stagehold.spark.session.call_clock import CallClock

MOST_SECONDS_BETWEEN_LOOKS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StallReaction:
    """``dump`` gives the folder of the stacks, ``interrupt`` has the stalled call end with some error."""

    dump: Callable[[], Path]
    interrupt: Callable[[], None]


class Watchdog:
    """Watches a clock in its block; ``stalled`` is the error to raise for whatever the call ended with."""

    def __init__(self, clock: CallClock, patience: float, reaction: StallReaction) -> None:
        self.stalled: CallStalled | None = None
        self._clock, self._patience, self._reaction = clock, patience, reaction
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog of calls to Spark", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(min(self._patience / 4, MOST_SECONDS_BETWEEN_LOOKS)):
            longest = self._clock.longest()
            if longest and longest[1] >= self._patience:
                return self._report_stall(*longest)

    def _report_stall(self, call: str, seconds: float) -> None:
        folder = None
        try:
            folder = self._reaction.dump()
        except Exception:
            log.exception("no stacks could be written")
        self.stalled = CallStalled(call, seconds, str(folder) if folder else None)
        log.warning("%s", self.stalled)
        self._reaction.interrupt()
