"""Named points at which a test or the demo can make an attempt fail.

A fault is a file ``HOME/faults/<point>.<stage>.<wave>`` whose text is the action. It is consumed before it acts, so
the next attempt gets through. Without that folder a point costs one failed unlink.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from stagehold.errors import Terminal

POLL_SECONDS = 0.002


class Point(StrEnum):
    """Steps of an attempt, in order. Those of a whole attempt have the region's name and wave 0; a stage's fence has wave 0."""

    AFTER_LEASE = "after_lease"
    BEFORE_FENCE = "before_fence"
    AFTER_FENCE = "after_fence"
    BEFORE_WRITE = "before_write"
    MID_WRITE = "mid_write"  # as soon as Spark has put a file where the wave's files go
    AFTER_WRITE = "after_write"
    AFTER_MEASURE = "after_measure"
    BEFORE_PUBLISH = "before_publish"
    AFTER_PUBLISH = "after_publish"  # the Delta commit is there, the ledger row is not
    AFTER_RECORD = "after_record"
    BEFORE_FINISH = "before_finish"  # everything is recorded, but not that the attempt has finished


class FaultAction(StrEnum):
    KILL = "kill"  # SIGKILL to this process: no clean-up, no listener, nothing
    FREEZE = "freeze"  # SIGSTOP: a zombie that may wake up later
    RAISE = "raise"  # an ordinary exception, which Airflow tries again
    FAIL = "fail"  # an exception that no other try can help
    HANG = "hang"  # silence with a living heartbeat


class InjectedFault(RuntimeError):
    """Raised by a `raise` fault; deliberately no StageholdError, since real faults are foreign too."""


class InjectedFailure(Terminal):
    """Raised by a `fail` fault."""

    def __init__(self, point: Point, stage: str, wave: int) -> None:
        super().__init__(
            f"A fault was switched on at {point} of {stage}, wave {wave}. What was consumable before it still is. "
            "The fault is used up: press Resume, or run `stagehold resume`."
        )


def inject(home: Path, point: Point, stage: str, wave: int, action: FaultAction) -> Path:
    """Arm one fault; it hits the first attempt that gets there."""
    path = _path(home, point, stage, wave)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(action)
    return path


def reach(home: Path, point: Point, stage: str, wave: int) -> None:
    """Pass a named point; fail there if a fault is armed for it."""
    path = _path(home, point, stage, wave)
    try:
        action = FaultAction(path.read_text().strip())
        path.unlink()
    except FileNotFoundError:
        return
    if action is FaultAction.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if action is FaultAction.FREEZE:
        os.kill(os.getpid(), signal.SIGSTOP)
    if action is FaultAction.HANG:
        time.sleep(600)
    if action is FaultAction.FAIL:
        raise InjectedFailure(point, stage, wave)
    if action is FaultAction.RAISE:
        raise InjectedFault(f"fault injected at {point} of {stage}, wave {wave}")


@contextmanager
def reach_within(home: Path, point: Point, stage: str, wave: int, begun: Callable[[], bool]) -> Iterator[None]:
    """Pass a point that lies inside the block: it is reached as soon as ``begun``. For faults that stop the process."""
    if not _path(home, point, stage, wave).exists():
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_SECONDS):
            if begun():
                return reach(home, point, stage, wave)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _path(home: Path, point: Point, stage: str, wave: int) -> Path:
    return home / "faults" / f"{point}.{stage}.{wave}"
