"""Tells classes of installed packages how checkpoints of runs end (Flink's `CheckpointListener`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from stagehold.extensions.installed import installed
from stagehold.model.records import Run

CHECKPOINT_LISTENERS = "stagehold.checkpoint_listeners"

log = logging.getLogger(__name__)


class CheckpointListener:
    """Derive a listener from this. Each process that takes checkpoints of a run makes one for the run.

    Each end is told at least once, in the order of the numbers: again where a process died before it was on record that
    all know. What a listener raises is logged and harms nothing.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def notify_checkpoint_complete(self, number: int) -> None:
        """The checkpoint is written, and a run can begin with it."""

    def notify_checkpoint_aborted(self, number: int, reason: str) -> None:
        """There never will be a checkpoint of this number. ``reason`` is a word of Flink's such as
        `checkpoint_expired`.
        """


def listeners_of(run: Run) -> Mapping[str, CheckpointListener]:
    """A listener of each installed class, by the name of its entry point; one that cannot be made is left out."""
    made: dict[str, CheckpointListener] = {}
    for name, kind in installed(CHECKPOINT_LISTENERS).items():
        try:
            made[name] = kind(run)
        except Exception:
            log.warning("checkpoint listener %s is left out for %s", name, run.run_id, exc_info=True)
    return made


def tell_checkpoint(listeners: Mapping[str, CheckpointListener], number: int, aborted: str | None) -> None:
    """Tell every listener.

    :param aborted: why there is no such checkpoint; None for one that is complete.
    """
    for name, listener in listeners.items():
        try:
            if aborted is None:
                listener.notify_checkpoint_complete(number)
            else:
                listener.notify_checkpoint_aborted(number, aborted)
        except Exception:
            log.warning("checkpoint listener %s failed on checkpoint %d", name, number, exc_info=True)
