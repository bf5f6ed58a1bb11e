"""Named points at which a test or the demo can make an attempt fail.

A fault is a file ``HOME/faults/<point>.<stage>.<wave>`` whose text is the action; with ``@<interval>`` at its end only
attempts for that interval meet it. It is consumed before it acts, so the next attempt gets through. Without that
folder a point costs two failed reads.
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
from stagehold.lake.store.location import path_safe
from stagehold.ledger.database.engine import other_thread_writes

POLL_SECONDS = 0.002


class Point(StrEnum):
    """Steps of an attempt, in order. Those of a whole attempt have the region's name and wave 0;
    a stage's fence has wave 0.
    """

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


class StatePoint(StrEnum):
    """A step of each wave of a stage that keeps state."""

    BEFORE_STATE = "before_state"  # the wave's rows are staged, and what it keeps is not


class QuarantinePoint(StrEnum):
    """A step of each wave of which rows are set aside."""

    AFTER_SPLIT = "after_split"  # good rows and others are staged apart, and nothing is published


class TogetherPoint(StrEnum):
    """Steps behind the last wave of a stage whose partitions are judged together; they, and the publishing that
    follows, have wave 0.
    """

    BEFORE_VERDICT = "before_verdict"  # all are held, and what the gate says of them is not on record
    AFTER_VERDICT = "after_verdict"  # it is, and nothing is published


class CheckpointPoint(StrEnum):
    """Steps of a checkpoint, in order; they have the run's pipeline as stage, and the checkpoint's number as wave."""

    BEGUN = "checkpoint_begun"  # its number is spent
    TRIGGERED = "checkpoint_triggered"  # attempts are asked to acknowledge it; not at the end of a run
    HALF_ACKNOWLEDGED = "checkpoint_half_acknowledged"  # some have done so, and not all
    WRITTEN = "checkpoint_written"  # its manifest is in the lake, and the ledger does not know
    RECORDED = "checkpoint_recorded"  # it is complete, and those that it replaces are still there
    TOLD = "checkpoint_told"  # whoever has a part in it knows, and the ledger does not know that
    RELEASED = "checkpoint_released"  # what it replaces counts no more, and is still in the lake


class ClearingPoint(StrEnum):
    """Steps of what deletes data that nobody needs; they have the pipeline as stage, and wave 0."""

    RELEASED = "outputs_released"  # the ledger says so, and the data is still there
    TAKEN_OUT = "interval_taken_out"  # its rows have left the published tables, and the ledger does not say so yet


AnyPoint = Point | StatePoint | QuarantinePoint | TogetherPoint | CheckpointPoint | ClearingPoint


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

    def __init__(self, point: AnyPoint, stage: str, wave: int) -> None:
        super().__init__(
            f"A fault was switched on at {point} of {stage}, wave {wave}. What was consumable before it still is. "
            "The fault is used up: press Resume, or run `stagehold resume`."
        )


def inject(
    home: Path, point: AnyPoint, stage: str, wave: int, action: FaultAction, interval: str | None = None
) -> Path:
    """Arm one fault; it hits the first attempt that gets there, of ``interval`` if one is given."""
    path = _path(home, point, stage, wave, interval)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(action)
    return path


class Faults:
    """The faults that are armed in a home. Tests hand in others, which do something else at the same points."""

    def __init__(self, home: Path, interval: str) -> None:
        self._home, self._interval = home, interval

    def reach(self, point: AnyPoint, stage: str, wave: int = 0) -> None:
        """Pass a named point; fail there if a fault is armed for it."""
        for path in self._paths(point, stage, wave):
            try:
                action = FaultAction(path.read_text().strip())
                path.unlink()
            except FileNotFoundError:
                continue
            _act(action, point, stage, wave)

    @contextmanager
    def reach_within(self, point: AnyPoint, stage: str, wave: int, begun: Callable[[], bool]) -> Iterator[None]:
        """Pass a point that lies inside the block: it is reached as soon as ``begun``.
        For faults that stop the process.
        """
        if not any(path.exists() for path in self._paths(point, stage, wave)):
            yield
            return
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(POLL_SECONDS):
                if begun():
                    return self.reach(point, stage, wave)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _paths(self, point: AnyPoint, stage: str, wave: int) -> tuple[Path, Path]:
        return _path(self._home, point, stage, wave, self._interval), _path(self._home, point, stage, wave, None)


def _act(action: FaultAction, point: AnyPoint, stage: str, wave: int) -> None:
    if action is FaultAction.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if action is FaultAction.FREEZE:
        _freeze()
    if action is FaultAction.HANG:
        time.sleep(600)
    if action is FaultAction.FAIL:
        raise InjectedFailure(point, stage, wave)
    if action is FaultAction.RAISE:
        raise InjectedFault(f"fault injected at {point} of {stage}, wave {wave}")


def _freeze() -> None:
    """Stop all threads, and none that has the ledger's lock: from SQLite nobody could take that.

    Linux hands a signal for the process to its main thread, and until that gets a core the caller would go on.
    """
    while other_thread_writes():
        time.sleep(0.001)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _path(home: Path, point: AnyPoint, stage: str, wave: int, interval: str | None) -> Path:
    return home / "faults" / f"{point}.{stage}.{wave}{f'@{path_safe(interval)}' if interval else ''}"
