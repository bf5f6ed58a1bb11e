"""The checkpoint coordinator: an event-driven machine by Flink's rules, without a clock, a thread or any I/O.

Events go in, commands come out as data. Whoever holds the coordinator lease drives it: calls `handle` for everything
that happens, carries the commands out, and sends a `Tick` at `next_wake`. A new holder starts a new machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import singledispatchmethod

from stagehold.checkpoints import coordinator_events as events
from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.checkpoints.failures import FailureCounter
from stagehold.checkpoints.requests import CheckpointRequest, Load, RequestQueue
from stagehold.checkpoints.store import CheckpointStore, CompletedCheckpoint
from stagehold.errors import UnknownName
from stagehold.model.checkpoint_records import CheckpointFailure
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import ATTEMPT, RUN

REMEMBERED_EXPIRED = 16


class Coordinator:
    """Takes the checkpoints and savepoints of one run.

    :param tasks: every task, and whether it writes a blocking output.
    :param store: what was completed before; its newest entry is what the run was restored from.
    :param uniform: random whole number between two bounds, for the first delay.
    :param anything_new: asked before a periodic checkpoint is begun: whether it would have what no earlier one has.
        Flink does not ask.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        tasks: Mapping[str, bool],
        *,
        uniform: Callable[[int, int], int],
        store: CheckpointStore | None = None,
        next_id: int = 1,
        anything_new: Callable[[], bool] = lambda: True,
    ) -> None:
        self.settings, self.store = settings, store or CheckpointStore()
        self.pending: dict[int, PendingCheckpoint] = {}
        self.queue = RequestQueue(max_concurrent=settings.max_concurrent, min_pause=settings.pause)
        self.failures = FailureCounter(settings.tolerable_failures)
        self._tasks = TaskBoard(tasks)
        self._uniform, self._anything_new = uniform, anything_new
        self._run = RunState.CREATED
        self._next_id, self._requests = next_id, 0
        self._next_periodic: int | None = None
        self._preparing: int | None = None
        self._discarding: set[int] = set()
        self._expired: deque[int] = deque(maxlen=REMEMBERED_EXPIRED)
        self._last_completion: int | None = None
        self._commands: list[events.Command] = []

    def handle(self, event: events.Event) -> tuple[events.Command, ...]:
        """Take one event in and say what is to be done, in this order."""
        self._commands = []
        self._on(event)
        return tuple(self._commands)

    def next_wake(self) -> int | None:
        """When the next `Tick` is due, None while only other events can change anything."""
        due = [pending.deadline for pending in self.pending.values() if pending.phase is not Phase.WRITING]
        if self._next_periodic is not None:
            due.append(self._next_periodic)
        return min(due, default=None)

    @singledispatchmethod
    def _on(self, event: events.Event) -> None:
        raise NotImplementedError(event)

    @_on.register
    def _(self, event: events.Tick) -> None:
        for pending in sorted(self.pending.values(), key=lambda each: each.id):
            if pending.overdue(event.at):
                self._expired.append(pending.id)
                self._abort(pending, CheckpointFailure.CHECKPOINT_EXPIRED)
                self._start_next(event.at)
        if self._next_periodic is not None and self._next_periodic <= event.at:
            # From the planned time and not from now: ticks that come late must not slow the rhythm down. Where Flink
            # makes up for each that was missed, one checkpoint has all that they would have.
            missed = (event.at - self._next_periodic) // self.settings.period
            self._next_periodic += (missed + 1) * self.settings.period
            if not (self.settings.one_waiting and self.queue.has_periodic):
                self._submit(SnapshotKind.CHECKPOINT, event.at, periodic=True)

    @_on.register
    def _(self, event: events.SnapshotRequested) -> None:
        self._submit(event.kind, event.at, name=event.name)

    @_on.register
    def _(self, event: events.Prepared) -> None:
        self._preparation_ended(event.checkpoint)
        pending = self.pending.get(event.checkpoint)
        if pending is not None and pending.phase is Phase.PREPARING:
            pending.phase = Phase.ASKED
            self._commands.append(events.AskTasks(pending.id, frozenset(pending.waiting)))
            self._write_if_acknowledged(pending)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.PreparationFailed) -> None:
        self._preparation_ended(event.checkpoint)
        if event.checkpoint in self.pending:
            self._abort(self.pending[event.checkpoint], CheckpointFailure.IO_EXCEPTION)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.Acknowledged) -> None:
        pending = self.pending.get(event.checkpoint)
        if pending is None:
            self._ignore(event.checkpoint, event.task)
        elif event.task not in pending.tasks:
            self._commands.append(events.Ignored(event.checkpoint, event.task, events.AnswerProblem.UNKNOWN_TASK))
        elif event.task not in pending.waiting:
            self._commands.append(events.Ignored(event.checkpoint, event.task, events.AnswerProblem.DUPLICATE))
        else:
            self._acknowledge(pending, event.task)

    @_on.register
    def _(self, event: events.Declined) -> None:
        pending = self.pending.get(event.checkpoint)
        if pending is None or pending.phase is Phase.WRITING:
            self._ignore(event.checkpoint, event.task)
            return
        self._abort(pending, event.reason, task=event.task)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.Written) -> None:
        pending = self.pending.get(event.checkpoint)
        if pending is None or pending.phase is not Phase.WRITING:
            # It was given up while its manifest was being written.
            self._discard(event.checkpoint)
            return
        self._complete(pending, event.at)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.WritingFailed) -> None:
        if event.checkpoint in self.pending:
            self._abort(self.pending[event.checkpoint], CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.Discarded) -> None:
        self._discarding.discard(event.checkpoint)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.RegionFailover) -> None:
        self._abort_all(CheckpointFailure.JOB_FAILOVER_REGION)
        self._start_next(event.at)

    @_on.register
    def _(self, event: events.RunChanged) -> None:
        self._run = event.state
        self._stop()
        if event.state is RunState.RUNNING and not (self.settings.blocking_output_gate and self._tasks.any_blocking):
            self._start_timer(event.at)
        if RUN.is_terminal(event.state):
            self.store, deleted = self.store.end(self.settings.retention, event.state)
            for entry in deleted:
                self._discard(entry.id)

    @_on.register
    def _(self, event: events.TaskChanged) -> None:
        self._tasks.change(event.task, event.state)
        if event.state is AttemptState.FINISHED:
            for pending in list(self.pending.values()):
                if event.task in pending.waiting:
                    self._acknowledge(pending, event.task)
        opened = event.state is AttemptState.RUNNING and self._run is RunState.RUNNING and not self._blocked()
        if opened and self._next_periodic is None:
            self._start_timer(event.at)

    def _start_timer(self, at: int) -> None:
        self._next_periodic = at + self._uniform(self.settings.pause, self.settings.period)

    def _stop(self) -> None:
        """End everything: no timer is set, and nothing is pending or queued. Savepoints end as well, and their users
        are told.
        """
        self._next_periodic = None
        self._abort_all(CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND)
        for request in self.queue.drain():
            self._commands.append(events.Refused(request, CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND))

    def _blocked(self) -> bool:
        """Flink's gate: an unfinished task writes a blocking output."""
        return self.settings.blocking_output_gate and self._tasks.any_unfinished_blocking

    def _submit(self, kind: SnapshotKind, at: int, *, periodic: bool = False, name: str | None = None) -> None:
        self._requests += 1
        request = CheckpointRequest(kind, at, self._requests, periodic, name)
        if RUN.is_terminal(self._run):
            self._commands.append(events.Refused(request, CheckpointFailure.CHECKPOINT_COORDINATOR_SHUTDOWN))
            return
        if kind.is_savepoint and self._blocked():
            self._commands.append(events.Refused(request, CheckpointFailure.BLOCKING_OUTPUT_EXISTS))
            return
        dropped = self.queue.add(request)
        if dropped is not None:
            self._commands.append(events.Refused(dropped, CheckpointFailure.TOO_MANY_CHECKPOINT_REQUESTS))
        if dropped is not request:
            self._start_next(at)

    def _start_next(self, at: int) -> None:
        """Start the first queued request that may; one that the tasks do not allow makes room for the next."""
        while True:
            load = Load(
                at, self._preparing is not None, len(self.pending), len(self._discarding), self._last_completion
            )
            start, refused, pause_left = self.queue.pick(load)
            if refused is not None:
                self._commands.append(events.Refused(refused, CheckpointFailure.MINIMUM_TIME_BETWEEN_CHECKPOINTS))
                self._next_periodic = at + pause_left
            if start is None:
                return
            if not self._all_tasks_ready():
                self._commands.append(events.Refused(start, CheckpointFailure.NOT_ALL_REQUIRED_TASKS_RUNNING))
            elif start.periodic and not self._anything_new():
                self._commands.append(events.SparedRequest(start))
            else:
                self._begin(start, at)

    def _all_tasks_ready(self) -> bool:
        return self._run is RunState.RUNNING and (not self.settings.every_task or self._tasks.all_begun)

    def _begin(self, request: CheckpointRequest, at: int) -> None:
        running = self._tasks.running
        pending = PendingCheckpoint(self._next_id, request, running, set(running), at + self.settings.timeout)
        self._next_id += 1
        self.pending[pending.id] = pending
        self._preparing = pending.id
        self._commands.append(events.Prepare(pending.id, request))

    def _preparation_ended(self, checkpoint: int) -> None:
        if self._preparing == checkpoint:
            self._preparing = None

    def _acknowledge(self, pending: PendingCheckpoint, task: str) -> None:
        pending.waiting.remove(task)
        self._write_if_acknowledged(pending)

    def _write_if_acknowledged(self, pending: PendingCheckpoint) -> None:
        if pending.phase is Phase.ASKED and not pending.waiting:
            pending.phase = Phase.WRITING
            self._commands.append(events.Write(pending.id, pending.request))

    def _complete(self, pending: PendingCheckpoint, at: int) -> None:
        """A plain savepoint is seen by nobody but its user,
        except that it ends a row of failures and delays the next checkpoint.
        """
        del self.pending[pending.id]
        self._last_completion = at
        self.failures.succeeded(pending.id)
        self._commands.append(events.Completed(pending.id, pending.request))
        kind = pending.request.kind
        dropped: tuple[CompletedCheckpoint, ...] = ()
        if kind is SnapshotKind.CHECKPOINT:
            self.store, dropped = self.store.add(CompletedCheckpoint(pending.id, kind))
        if kind is not SnapshotKind.SAVEPOINT:
            self._subsume_older(pending.id)
            newest = dropped[-1].id if dropped and dropped[-1].ours else None
            self._commands.append(
                events.Announce(pending.id, pending.tasks, newest, stop=kind is SnapshotKind.STOP_WITH_SAVEPOINT)
            )
        for entry in dropped:
            if entry.ours:
                self._discard(entry.id)

    def _subsume_older(self, checkpoint: int) -> None:
        for pending in list(self.pending.values()):
            if pending.id < checkpoint and not pending.request.kind.is_savepoint:
                self._abort(pending, CheckpointFailure.CHECKPOINT_SUBSUMED)

    def _abort_all(self, reason: CheckpointFailure) -> None:
        for pending in list(self.pending.values()):
            self._abort(pending, reason)

    def _abort(self, pending: PendingCheckpoint, reason: CheckpointFailure, *, task: str | None = None) -> None:
        del self.pending[pending.id]
        self._commands.append(events.Aborted(pending.id, pending.request, reason, pending.tasks))
        if self.failures.failed(pending.request.kind, reason, pending.id, task):
            self._commands.append(events.FailRun(pending.id, reason))

    def _ignore(self, checkpoint: int, task: str) -> None:
        problem = (
            events.AnswerProblem.EXPIRED if checkpoint in self._expired else events.AnswerProblem.UNKNOWN_CHECKPOINT
        )
        self._commands.append(events.Ignored(checkpoint, task, problem))

    def _discard(self, checkpoint: int) -> None:
        self._discarding.add(checkpoint)
        self._commands.append(events.Discard(checkpoint))


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
