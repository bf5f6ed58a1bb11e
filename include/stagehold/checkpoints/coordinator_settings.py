"""How often checkpoints are taken, how long they may take, and how many may fail.
Times are whole milliseconds, which add up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from stagehold.checkpoints.store import Retention
from stagehold.spec.settings.run_settings import UNLIMITED, CheckpointSettings, OnCancel

MILLISECOND = timedelta(milliseconds=1)
LONGEST_PAUSE = timedelta(days=365) // MILLISECOND
NEVER = 100 * LONGEST_PAUSE


@dataclass(frozen=True)
class CoordinatorSettings:
    """Defaults are Flink's, but for two of the last three.

    :param tolerable_failures: so many may fail in a row; None for any number.
    :param blocking_output_gate: Flink takes no checkpoint while a task writes a blocking output. Off: an attempt can
        acknowledge at every wave boundary.
    :param every_task: Flink demands that every task runs or is finished. Off: in a staged schedule some have not begun,
        and those have nothing to save.
    :param one_waiting: a periodic checkpoint for which there is no place yet is the only one that waits. Flink queues
        one for each interval that passes meanwhile, and they then follow each other, with nothing new in them.
    """

    interval: int
    min_pause: int = 0
    timeout: int = 600_000
    max_concurrent: int = 1
    tolerable_failures: int | None = 0
    retention: Retention = Retention.NEVER
    blocking_output_gate: bool = False
    every_task: bool = False
    one_waiting: bool = False

    @staticmethod
    def of(declared: CheckpointSettings) -> CoordinatorSettings:
        """The settings that a pipeline's author declares. If there is no interval, no run lives to see a periodic
        checkpoint.
        """
        tolerable = declared.tolerable_failures
        return CoordinatorSettings(
            interval=declared.interval // MILLISECOND if declared.interval else NEVER,
            min_pause=declared.min_pause // MILLISECOND,
            timeout=declared.timeout // MILLISECOND,
            max_concurrent=declared.max_concurrent,
            tolerable_failures=None if tolerable == UNLIMITED else int(tolerable),
            retention=retention_of(declared),
            one_waiting=True,
        )

    @property
    def pause(self) -> int:
        return min(self.min_pause, LONGEST_PAUSE)

    @property
    def period(self) -> int:
        """Periodic checkpoints are never closer than the pause would let them be."""
        return max(self.interval, self.pause)


def retention_of(declared: CheckpointSettings) -> Retention:
    """A run that ended by itself leaves its checkpoints; of one that was cancelled its author decides."""
    return Retention.UNLESS_CANCELED if declared.on_cancel is OnCancel.DELETE else Retention.ALWAYS
