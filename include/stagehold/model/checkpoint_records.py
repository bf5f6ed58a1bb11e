"""What the ledger says about the checkpoints of runs; what is in a checkpoint stands in the lake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CheckpointTrigger(StrEnum):
    """Why a checkpoint was taken."""

    PERIODIC = "periodic"
    END_OF_RUN = "end_of_run"
    ASKED_FOR = "asked_for"  # a savepoint
    STOP = "stop"  # a savepoint with which the run ends


class CheckpointState(StrEnum):
    """How far a checkpoint came."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class CheckpointFailure(StrEnum):
    """Why a checkpoint was refused or ended without completing."""

    # Before it began: nothing was asked of any task.
    TOO_MANY_CHECKPOINT_REQUESTS = "too_many_checkpoint_requests"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "minimum_time_between_checkpoints"
    NOT_ALL_REQUIRED_TASKS_RUNNING = "not_all_required_tasks_running"
    BLOCKING_OUTPUT_EXISTS = "blocking_output_exists"
    # While it was being prepared, taken or written.
    IO_EXCEPTION = "io_exception"
    CHECKPOINT_DECLINED = "checkpoint_declined"
    CHECKPOINT_DECLINED_TASK_NOT_READY = "checkpoint_declined_task_not_ready"
    CHECKPOINT_DECLINED_TASK_CLOSING = "checkpoint_declined_task_closing"
    CHECKPOINT_ASYNC_EXCEPTION = "checkpoint_async_exception"
    CHECKPOINT_EXPIRED = "checkpoint_expired"
    FINALIZE_CHECKPOINT_FAILURE = "finalize_checkpoint_failure"
    # Because of something else.
    CHECKPOINT_SUBSUMED = "checkpoint_subsumed"
    CHECKPOINT_COORDINATOR_SUSPEND = "checkpoint_coordinator_suspend"
    CHECKPOINT_COORDINATOR_SHUTDOWN = "checkpoint_coordinator_shutdown"  # the run had ended before it was asked for
    JOB_FAILOVER_REGION = "job_failover_region"


@dataclass(frozen=True)
class SavepointRequest:
    """Somebody's wish for a savepoint of a run; with ``stop`` the run ends with it. ``failure`` says why there is none
    once it is settled.
    """

    name: str
    run_id: str
    stop: bool
    requested_by: str
    reason: str
    requested_at: datetime
    settled_at: datetime | None = None
    failure: str | None = None


@dataclass(frozen=True)
class CheckpointRecord:
    """A checkpoint of a run. A run's checkpoints are ordered by their numbers.

    ``failure`` says in words why it failed, ``reason`` in one of Flink's; with ``fails_run`` it was one too many, and
    every attempt that was under way then fails. ``bytes_written`` are those of its own files, ``bytes_referenced``
    those of parts that an earlier checkpoint wrote. One that was ``discarded_at`` some time is in the lake no more. A
    ``savepoint`` is the user's, who gave it this name. It is ``untold`` while somebody who has a part in checkpoints
    does not know how it ended.
    """

    run_id: str
    number: int
    pipeline: str
    interval: str
    trigger: CheckpointTrigger
    state: CheckpointState
    triggered_at: datetime
    ended_at: datetime | None = None
    failure: str | None = None
    reason: CheckpointFailure | None = None
    fails_run: bool = False
    bytes_written: int = 0
    bytes_referenced: int = 0
    discarded_at: datetime | None = None
    savepoint: str | None = None
    untold: bool = False

    @property
    def kept(self) -> bool:
        """Whether the lake has it."""
        return self.state is CheckpointState.COMPLETED and self.discarded_at is None


class Answer(StrEnum):
    """What an attempt says when it is asked to do its part."""

    ACKNOWLEDGED = "acknowledged"
    DECLINED = "declined"


@dataclass(frozen=True)
class Acknowledgement:
    """An attempt's part in a checkpoint. ``reason`` says why it declined; without an answer it has not answered yet."""

    run_id: str
    number: int
    attempt_id: str
    region: str
    share: str | None
    asked_at: datetime
    answered_at: datetime | None = None
    answer: Answer | None = None
    reason: CheckpointFailure | None = None

    @property
    def subject(self) -> str:
        return part_name(self.region, self.share)


def part_name(region: str, share: object) -> str:
    """What a task works on, a region or a share of it: for people, and as the name of the task in the coordinator."""
    return region if share is None else f"{region}[{share}]"
