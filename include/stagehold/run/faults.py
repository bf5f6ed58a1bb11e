"""Named points at which a test or the demo can make an attempt fail.

A fault is a file ``HOME/faults/<point>.<stage>.<wave>`` whose text is the action. It is consumed before it acts, so
the next attempt gets through. Without that folder a point costs one failed unlink.
"""

from __future__ import annotations

import os
import signal
import time
from enum import StrEnum
from pathlib import Path

from stagehold.errors import Terminal


class Point(StrEnum):
    BEFORE_WRITE = "before_write"
    AFTER_WRITE = "after_write"
    BEFORE_PUBLISH = "before_publish"
    AFTER_PUBLISH = "after_publish"  # the Delta commit is there, the ledger row is not
    AFTER_RECORD = "after_record"


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


def _path(home: Path, point: Point, stage: str, wave: int) -> Path:
    return home / "faults" / f"{point}.{stage}.{wave}"
