"""Who takes part in a checkpoint: the tasks of a run, and a checkpoint that waits for some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stagehold.checkpoints.requests import CheckpointRequest
from stagehold.errors import UnknownName
from stagehold.model.records import AttemptState
from stagehold.model.states import ATTEMPT


class Phase(StrEnum):
    """How far a pending checkpoint is."""

    PREPARING = "preparing"
    ASKED = "asked"
    WRITING = "writing"  # neither a decline nor the timeout reaches it any more


@dataclass
class PendingCheckpoint:
    """A checkpoint between its id and its end. ``waiting`` are those of ``tasks`` that have not acknowledged yet."""

    id: int
    request: CheckpointRequest
    tasks: frozenset[str]
    waiting: set[str]
    deadline: int
    phase: Phase = Phase.PREPARING

    @property
    def half_acknowledged(self) -> bool:
        return self.phase is Phase.ASKED and 0 < len(self.waiting) < len(self.tasks)

    def overdue(self, at: int) -> bool:
        return self.phase is not Phase.WRITING and self.deadline <= at


class TaskBoard:
    """The tasks of a run and what they do now.

    :param tasks: every task, and whether it writes a blocking output.
    """

    def __init__(self, tasks: Mapping[str, bool]) -> None:
        self._writes_blocking = dict(tasks)
        self._states = dict.fromkeys(tasks, AttemptState.CREATED)

    @property
    def running(self) -> frozenset[str]:
        """The tasks that can acknowledge. Finished tasks have nothing to add, and the others nothing yet."""
        return frozenset(task for task, state in self._states.items() if state is AttemptState.RUNNING)

    @property
    def all_begun(self) -> bool:
        return all(state in (AttemptState.RUNNING, AttemptState.FINISHED) for state in self._states.values())

    @property
    def any_blocking(self) -> bool:
        return any(self._writes_blocking.values())

    @property
    def any_unfinished_blocking(self) -> bool:
        """A task that failed or was cancelled writes nothing any more either."""
        return any(
            self._writes_blocking[task] for task, state in self._states.items() if not ATTEMPT.is_terminal(state)
        )

    def change(self, task: str, state: AttemptState) -> None:
        """:raises UnknownName: the run has no such task."""
        if task not in self._states:
            raise UnknownName("task", task, tuple(self._states))
        self._states[task] = state
