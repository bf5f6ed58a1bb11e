"""Which failed checkpoints count, and when there were too many of them for the run to go on."""

from __future__ import annotations

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.requests import PRE_FLIGHT
from stagehold.model.checkpoint_records import CheckpointFailure

COUNTED = frozenset(
    {
        CheckpointFailure.CHECKPOINT_DECLINED,
        CheckpointFailure.CHECKPOINT_ASYNC_EXCEPTION,
        CheckpointFailure.CHECKPOINT_EXPIRED,
        CheckpointFailure.IO_EXCEPTION,
        CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE,
    }
)


class FailureCounter:
    """Counts failures since the last success, each checkpoint once.

    :param tolerable: so many may fail in a row; None for any number.
    """

    def __init__(self, tolerable: int | None) -> None:
        self._tolerable = tolerable
        self._failures = 0
        self._counted: set[int] = set()
        self._last_success = -1

    def succeeded(self, checkpoint: int) -> None:
        """A completion clears the count, a savepoint's too; one older than the last does not."""
        if checkpoint > self._last_success:
            self._last_success = checkpoint
            self._clear()

    def failed(self, kind: SnapshotKind, reason: CheckpointFailure, checkpoint: int | None, task: str | None) -> bool:
        """Count a failed checkpoint. True when the run has to fail because of it.

        A savepoint that the coordinator could not complete is the user's to ask for again and fails nothing. A task
        that declines a stop-with-savepoint always fails the run, or the run would wait for ever for a stop that does
        not come.

        :param checkpoint: its number; None if none had been drawn.
        :param task: whose fault it is; None if it is the coordinator's own.
        """
        if task is None or reason in PRE_FLIGHT:
            return not kind.is_savepoint and self._exceeded(reason, checkpoint)
        return kind is SnapshotKind.STOP_WITH_SAVEPOINT or self._exceeded(reason, checkpoint)

    def _exceeded(self, reason: CheckpointFailure, checkpoint: int | None) -> bool:
        """Count the failure, unless it is older than the last success; start over when the count is full."""
        if (
            self._tolerable is None
            or reason not in COUNTED
            or (checkpoint is not None and checkpoint <= self._last_success)
        ):
            return False
        if checkpoint is None or checkpoint not in self._counted:
            self._failures += 1
        if checkpoint is not None:
            self._counted.add(checkpoint)
        if self._failures <= self._tolerable:
            return False
        self._clear()
        return True

    def _clear(self) -> None:
        self._failures = 0
        self._counted.clear()
