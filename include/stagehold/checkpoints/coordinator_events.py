"""What the checkpoint coordinator is told, and what it answers: events in, commands out, all of them plain data.

``at`` is the time of an event in milliseconds of one clock that does not go back. A task is whatever acknowledges: here
the attempt of a region.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.requests import CheckpointRequest
from stagehold.model.checkpoint_records import CheckpointFailure
from stagehold.model.records import AttemptState, RunState


@dataclass(frozen=True)
class Tick:
    """Time has passed; at most one periodic checkpoint is triggered by each tick, as by each firing of a timer."""

    at: int


@dataclass(frozen=True)
class SnapshotRequested:
    """A user asks for a checkpoint or savepoint."""

    at: int
    kind: SnapshotKind
    name: str | None = None


@dataclass(frozen=True)
class Prepared:
    """The place for a checkpoint is ready."""

    at: int
    checkpoint: int


@dataclass(frozen=True)
class PreparationFailed:
    at: int
    checkpoint: int


@dataclass(frozen=True)
class Acknowledged:
    """A task has done its part."""

    at: int
    checkpoint: int
    task: str


@dataclass(frozen=True)
class Declined:
    """A task cannot do its part."""

    at: int
    checkpoint: int
    task: str
    reason: CheckpointFailure = CheckpointFailure.CHECKPOINT_DECLINED


@dataclass(frozen=True)
class Written:
    """The manifest, and for a checkpoint its row, are durable."""

    at: int
    checkpoint: int


@dataclass(frozen=True)
class WritingFailed:
    at: int
    checkpoint: int


@dataclass(frozen=True)
class Discarded:
    """What `Discard` asked for is done, or was given up."""

    at: int
    checkpoint: int


@dataclass(frozen=True)
class RegionFailover:
    """Regions restart, so what is pending would mix two attempts."""

    at: int


@dataclass(frozen=True)
class RunChanged:
    at: int
    state: RunState


@dataclass(frozen=True)
class TaskChanged:
    at: int
    task: str
    state: AttemptState


Event = (
    Tick
    | SnapshotRequested
    | Prepared
    | PreparationFailed
    | Acknowledged
    | Declined
    | Written
    | WritingFailed
    | Discarded
    | RegionFailover
    | RunChanged
    | TaskChanged
)


@dataclass(frozen=True)
class Prepare:
    """Make the place for a checkpoint ready; answer `Prepared` or `PreparationFailed`."""

    checkpoint: int
    request: CheckpointRequest


@dataclass(frozen=True)
class AskTasks:
    """Tell tasks to do their part."""

    checkpoint: int
    tasks: frozenset[str]


@dataclass(frozen=True)
class Write:
    """Every task has done its part: write the manifest; answer `Written` or `WritingFailed`."""

    checkpoint: int
    request: CheckpointRequest


@dataclass(frozen=True)
class Completed:
    """The request was fulfilled."""

    checkpoint: int
    request: CheckpointRequest


@dataclass(frozen=True)
class Announce:
    """Tell tasks that a checkpoint is complete, and the newest one that is deleted for it;
    with ``stop`` they end now.
    """

    checkpoint: int
    tasks: frozenset[str]
    newest_subsumed: int | None
    stop: bool


@dataclass(frozen=True)
class Refused:
    """The request was not begun, and no id was drawn for it."""

    request: CheckpointRequest
    reason: CheckpointFailure


@dataclass(frozen=True)
class SparedRequest:
    """A periodic request was not begun, and no id was drawn for it: nothing has changed since the newest checkpoint."""

    request: CheckpointRequest


@dataclass(frozen=True)
class Aborted:
    """The request was begun and is given up; tell the tasks, and forget what they sent."""

    checkpoint: int
    request: CheckpointRequest
    reason: CheckpointFailure
    tasks: frozenset[str]


@dataclass(frozen=True)
class Discard:
    """Delete a manifest, and what only it needs; answer `Discarded`."""

    checkpoint: int


class AnswerProblem(StrEnum):
    """Why what a task sent is of no use."""

    DUPLICATE = "duplicate"
    UNKNOWN_TASK = "unknown task"
    EXPIRED = "expired"  # the answer comes after the timeout
    UNKNOWN_CHECKPOINT = "unknown checkpoint"


@dataclass(frozen=True)
class Ignored:
    """Forget what the task sent with this answer."""

    checkpoint: int
    task: str
    problem: AnswerProblem


@dataclass(frozen=True)
class FailRun:
    """Too many checkpoints failed, or one without which the run cannot go on."""

    checkpoint: int
    reason: CheckpointFailure


Command = (
    Prepare | AskTasks | Write | Completed | Announce | Refused | SparedRequest | Aborted | Discard | Ignored | FailRun
)
