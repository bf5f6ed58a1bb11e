"""Drives the checkpoint coordinator of one run: hands it events, and carries out its commands."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import singledispatchmethod
from random import Random

from stagehold.checkpoints import coordinator_events as events
from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.coordinator import Coordinator
from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.errors import NoticeFailed, StageholdError
from stagehold.model.checkpoint_records import (
    Acknowledgement,
    Answer,
    CheckpointFailure,
    CheckpointRecord,
    CheckpointTrigger,
)
from stagehold.model.records import Run, RunState
from stagehold.model.states import RunEvent, Transition, newest_life
from stagehold.model.units import write_duration
from stagehold.run.checkpoints.notices import Notices
from stagehold.run.checkpoints.run_checkpoints import Listener, RunCheckpoints, tell
from stagehold.run.checkpoints.run_events import RunWatch, parts_of
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.faults import CheckpointPoint

SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds between two looks at the ledger
BEFORE_NOTICE = 5_000  # milliseconds before a notice that failed is given again
LOOKS = 10  # looks in an interval or a timeout, whichever is shorter

TRIGGERS = {
    SnapshotKind.CHECKPOINT: CheckpointTrigger.PERIODIC,
    SnapshotKind.SAVEPOINT: CheckpointTrigger.ASKED_FOR,
    SnapshotKind.STOP_WITH_SAVEPOINT: CheckpointTrigger.STOP,
}
# Of a savepoint that was asked for: an attempt, or whoever coordinated, ended meanwhile.
TRIED_AGAIN = frozenset(
    {
        CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND,
        CheckpointFailure.JOB_FAILOVER_REGION,
        CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING,
        CheckpointFailure.NOT_ALL_REQUIRED_TASKS_RUNNING,
    }
)

log = logging.getLogger(__name__)


class Driver:
    """One machine, from when the coordinator lease was taken until it is given up. One thread does everything, one
    thing after the other.

    An error of the ledger or the lease is raised, and then the driver must not be used any more: the next holder of the
    lease clears up what it began. If the lake cannot be written, the checkpoint fails.
    """

    def __init__(
        self, checkpoints: RunCheckpoints, settings: CoordinatorSettings, listeners: Sequence[Listener]
    ) -> None:
        self._checkpoints, self._settings, self._listeners = checkpoints, settings, tuple(listeners)
        self._clock, self._ledger, self._notices = Clock(), checkpoints.workplace.ledger, Notices(checkpoints)
        parts = parts_of(checkpoints.request.pipeline)
        self._watch = RunWatch(checkpoints.run, parts, self._ledger)
        self._machine = Coordinator(
            settings,
            parts,
            uniform=self._until_next,
            store=checkpoints.store,
            next_id=checkpoints.next_number,
            anything_new=checkpoints.anything_new,
        )
        self._records: dict[int, CheckpointRecord] = {}  # checkpoints in progress
        self._errors: dict[int, Exception] = {}  # why checkpoints could not be written
        self._failing: frozenset[str] = frozenset()  # attempts that were under way when the run failed
        self._at = self._clock.now  # of the event that is handled
        self._halved: set[int] = set()
        self._asked_for: set[str] = set()  # savepoints
        self._newest = 0
        self._next_notice: int | None = self._clock.now  # None while everybody knows everything
        self._failed_notice: str | None = None

    def turn(self) -> None:
        """Look once at what has happened, and do what follows from it.

        :raises LeaseLost: or Fenced, another process has the lease.
        """
        self._checkpoints.heartbeat.check()
        if self._next_notice is not None and self._next_notice <= self._clock.now:
            self._notify()
        for event in self._watch.look(tuple(self._records.values()), self._clock.now):
            self._handle(event)
        self._go_on_after_failure()
        self._take_requests()
        self._notice_halves()
        self._handle(events.Tick(self._clock.now))

    def suspend(self) -> None:
        """Abort pending checkpoints; another process goes on."""
        self._handle(events.RunChanged(self._clock.now, RunState.SUSPENDED))

    @property
    def pause(self) -> float:
        """Seconds until the next turn is due."""
        often = min(self._settings.interval, self._settings.timeout) / 1000 / LOOKS
        longest = min(max(often, SHORTEST_PAUSE), LONGEST_PAUSE)
        wake = self._machine.next_wake()
        return longest if wake is None else min(longest, max(wake - self._clock.now, 0) / 1000)

    def _until_next(self, least: int, period: int) -> int:
        run = self._checkpoints.run
        began = life_began(run, self._ledger.transitions.of_run(run.run_id))
        return until_next(run.run_id, began, self._at, least=least, period=period)

    def _handle(self, happened: events.Event) -> None:
        waiting = deque([happened])
        while waiting:
            event = waiting.popleft()
            self._at = event.at
            commands = self._machine.handle(event)
            fatal = {command.checkpoint for command in commands if isinstance(command, events.FailRun)}
            for command in commands:
                if isinstance(command, events.Aborted):
                    self._abort(command, fails_run=command.checkpoint in fatal)
                elif (answer := self._carry_out(command)) is not None:
                    waiting.append(answer)

    @singledispatchmethod
    def _carry_out(self, command: events.Command) -> events.Event | None:
        """Carry out a command. Commands without a function of their own only say what was done, or was of no use."""
        log.debug("run %s: %s", self._checkpoints.run.run_id, command)
        return None

    @_carry_out.register
    def _(self, command: events.Prepare) -> events.Event:
        name = command.request.name
        record = self._checkpoints.begin(command.checkpoint, TRIGGERS[command.request.kind], name)
        self._records[record.number] = record
        return events.Prepared(self._clock.now, record.number)

    @_carry_out.register
    def _(self, command: events.AskTasks) -> None:
        attempts = self._watch.running(command.tasks)
        lease = self._checkpoints.heartbeat.lease
        self._ledger.acknowledgements.ask(self._records[command.checkpoint], attempts, lease)
        self._checkpoints.reach(CheckpointPoint.TRIGGERED, command.checkpoint)

    @_carry_out.register
    def _(self, command: events.Write) -> events.Event:
        record = self._records[command.checkpoint]
        self._ledger.acknowledgements.settle(record)
        try:
            with naming_storage(self._checkpoints.workplace.settings):
                manifest, covers = self._checkpoints.write(record)
        except Exception as error:
            told_on_purpose = isinstance(error, StageholdError)
            log.warning("checkpoint %d was not written: %s", record.number, error, exc_info=not told_on_purpose)
            self._errors[record.number] = error
            return events.WritingFailed(self._clock.now, record.number)
        self._records[record.number] = self._checkpoints.complete(record, manifest, covers)
        return events.Written(self._clock.now, record.number)

    @_carry_out.register
    def _(self, command: events.Completed) -> None:
        record = self._records.pop(command.checkpoint)
        if record.savepoint:
            self._ledger.savepoint_requests.settle(record.savepoint)
        else:
            self._newest = command.checkpoint
        self._tell(record)
        self._notify()  # before what it replaces is deleted

    @_carry_out.register
    def _(self, command: events.Announce) -> None:
        """Attempts read the end of what they acknowledged; from now on a run that stops is suspended."""
        if command.stop:
            self._ledger.runs.apply(self._checkpoints.run.run_id, RunEvent.SUSPEND)

    @_carry_out.register
    def _(self, command: events.Refused) -> None:
        self._answer_request(command.request.name, command.reason, failure_text(command.reason, (), 0, None))

    @_carry_out.register
    def _(self, command: events.Discard) -> events.Event:
        try:
            self._checkpoints.discard(command.checkpoint, self._newest)
        except OSError:
            log.warning("checkpoint %d was not deleted", command.checkpoint, exc_info=True)
        return events.Discarded(self._clock.now, command.checkpoint)

    @_carry_out.register
    def _(self, command: events.FailRun) -> events.Event:
        """The attempts hear of it at their next boundary; until then nothing more is asked of them."""
        tolerable = f"{self._settings.tolerable_failures} may fail in a row"
        self._checkpoints.workplace.progress(f"checkpoint {command.checkpoint} fails the run, since {tolerable}")
        self._failing = self._watch.under_way
        return events.RunChanged(self._clock.now, RunState.FAILING)

    def _go_on_after_failure(self) -> None:
        """Have the machine go on after a failure. The run may have been restarted between two looks, so its own state
        does not tell.
        """
        if self._failing and self._failing.isdisjoint(self._watch.under_way):
            self._failing = frozenset()
            self._handle(events.RunChanged(self._clock.now, self._watch.state))

    def _take_requests(self) -> None:
        """Savepoints that users want. Each is handed to the machine once, as soon as it would begin it."""
        if self._watch.state is not RunState.RUNNING:
            return
        for request in self._ledger.savepoint_requests.open_of(self._checkpoints.run.run_id):
            if request.name not in self._asked_for:
                self._asked_for.add(request.name)
                kind = SnapshotKind.STOP_WITH_SAVEPOINT if request.stop else SnapshotKind.SAVEPOINT
                self._handle(events.SnapshotRequested(self._clock.now, kind, request.name))

    def _answer_request(self, savepoint: str | None, reason: CheckpointFailure, text: str) -> None:
        """Tell the waiting process why there is no savepoint, unless it will be tried again."""
        if savepoint and reason in TRIED_AGAIN:
            self._asked_for.discard(savepoint)
        elif savepoint:
            self._ledger.savepoint_requests.settle(savepoint, text)

    def _abort(self, command: events.Aborted, *, fails_run: bool) -> None:
        record = self._records.pop(command.checkpoint)
        answers = self._ledger.acknowledgements.of(record)
        text = failure_text(command.reason, answers, self._settings.timeout, self._errors.pop(record.number, None))
        self._answer_request(record.savepoint, command.reason, text)
        self._tell(self._checkpoints.fail(record, command.reason, text, fails_run=fails_run))
        self._notify()

    def _notify(self) -> None:
        """Tell everybody who has a part in the checkpoints. A function that raises is asked again a moment later."""
        try:
            self._notices.tell()
        except NoticeFailed as error:
            self._next_notice = self._clock.now + BEFORE_NOTICE
            if str(error) != self._failed_notice:
                self._failed_notice = str(error)
                self._checkpoints.warn(error.checkpoint, str(error))
        else:
            self._next_notice = None

    def _notice_halves(self) -> None:
        for pending in self._machine.pending.values():
            if pending.half_acknowledged and pending.id not in self._halved:
                self._halved.add(pending.id)
                self._checkpoints.reach(CheckpointPoint.HALF_ACKNOWLEDGED, pending.id)

    def _tell(self, record: CheckpointRecord) -> None:
        tell(self._listeners, record, self._checkpoints.workplace)


_TEXTS: Mapping[CheckpointFailure, str] = {
    CheckpointFailure.CHECKPOINT_SUBSUMED: "a newer one was complete before it",
    CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND: "whoever took it ended, or the run did not go on, before its end",
    CheckpointFailure.CHECKPOINT_COORDINATOR_SHUTDOWN: "the run had ended before it was asked for",
    CheckpointFailure.JOB_FAILOVER_REGION: "an attempt of the run failed or was replaced before its end",
}


def failure_text(
    reason: CheckpointFailure, answers: Sequence[Acknowledgement], timeout: int, error: Exception | None
) -> str:
    """Why a checkpoint failed, in words.

    :param timeout: in milliseconds.
    :param error: what kept it from being written.
    """
    if error is not None:
        return f"{type(error).__name__}: {error}"
    if reason is CheckpointFailure.CHECKPOINT_EXPIRED:
        late = ", ".join(acknowledgement.subject for acknowledgement in answers if acknowledgement.answer is None)
        return f"not acknowledged within {write_duration(timedelta(milliseconds=timeout))} by {late or 'all'}"
    declined = ", ".join(
        acknowledgement.subject for acknowledgement in answers if acknowledgement.answer is Answer.DECLINED
    )
    if declined and reason not in _TEXTS:
        return f"{declined} declined: {reason.replace('_', ' ')}"
    return _TEXTS.get(reason, reason.replace("_", " "))


class Clock:
    """Milliseconds since 1970, from the machine's clock at the moment when this was made; from then on they never go
    back.
    """

    def __init__(self) -> None:
        self._ahead = time.time_ns() - time.monotonic_ns()

    @property
    def now(self) -> int:
        return (time.monotonic_ns() + self._ahead) // 1_000_000


def life_began(run: Run, history: Sequence[Transition]) -> datetime:
    """When the run was last started anew. A rebuilt ledger knows only when it was first started."""
    life = newest_life(history)
    return life[0].recorded_at if life and life[0].begins_life_of_run else run.started_at


def until_next(run_id: str, began: datetime, now: int, *, least: int, period: int) -> int:
    """Milliseconds to the next of the run's times: the first comes a random delay after the run ``began``, from
    ``least`` to ``period``, and the others follow ``period`` by ``period``.

    Every process that draws for the run draws the same. Hosts agree on its times as well as their clocks agree.
    """
    delay = Random(run_id).randint(least, period)  # noqa: S311 - spreads load, hides nothing
    first = round(began.timestamp() * 1000) + delay
    return first - now if now < first else (first - now) % period
