"""Where the time of a command that runs a pipeline goes, from the start of its process on.

Laps follow each other, so together they are all of the time. Only those of the main thread count: what other threads
do goes on beside it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path


class Lap(StrEnum):
    """Parts of a run, in the order in which it comes to them first."""

    START = "interpreter and imports"
    REQUEST = "settings and pipeline"
    PLAN = "ledger and plan"
    SERVER = "Spark's server"
    REGION = "lease, sources and plan of regions"
    SESSION = "Spark sessions"
    MODULES = "modules sent"
    CHECK = "functions checked"
    FIRST_WAVE = "first wave"
    WAVES = "other waves"
    END = "end"


class Timings:
    """Seconds by lap."""

    def __init__(self) -> None:
        self._seconds: dict[Lap, float] = {}
        self._last: float | None = None

    def passed(self, lap: Lap) -> None:
        """Note that the time since the lap before, or since the process began, was for this lap."""
        if threading.current_thread() is not threading.main_thread():
            return
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        began = _process_start() if self._last is None else self._last
        self._seconds[lap] = self._seconds.get(lap, 0.0) + now - began
        self._last = now

    def add(self, seconds: Mapping[Lap, float]) -> None:
        """Note what another process that worked for this one has spent, beside this one's own time."""
        for lap, spent in seconds.items():
            self._seconds[lap] = self._seconds.get(lap, 0.0) + spent

    def wave_passed(self) -> None:
        self.passed(Lap.WAVES if Lap.FIRST_WAVE in self._seconds else Lap.FIRST_WAVE)

    @property
    def seconds(self) -> Mapping[Lap, float]:
        return {lap: self._seconds[lap] for lap in Lap if lap in self._seconds}

    def __str__(self) -> str:
        return ", ".join(f"{lap} {seconds:.1f} s" for lap, seconds in self.seconds.items())


TIMINGS = Timings()  # of this process


def _process_start() -> float:
    """When the process began, by the clock that goes on while the machine sleeps, as the kernel has it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
