"""Which process takes the checkpoints of a run: a thread of one of its attempts while the run goes on, and the process
that ends it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.coordinator_settings import CoordinatorSettings, retention_of
from stagehold.checkpoints.store import DELETED_AT, CompletedCheckpoint
from stagehold.errors import LeaseHeld, NoticeFailed, StageholdError
from stagehold.model.checkpoint_records import CheckpointTrigger
from stagehold.model.records import Lease, Run
from stagehold.model.states import GLOBALLY_TERMINAL
from stagehold.run.checkpoints.coordinator_driver import Driver
from stagehold.run.checkpoints.discarding import take_coordinator_lease
from stagehold.run.checkpoints.notices import Notices
from stagehold.run.checkpoints.run_checkpoints import KIND, LISTENERS, Listener, RunCheckpoints, say
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.leasing import kept_alive
from stagehold.run.planning.planning import RunRequest

log = logging.getLogger(__name__)


def coordinating(request: RunRequest, workplace: Workplace) -> AbstractContextManager[object]:
    """Have periodic checkpoints taken while the block works, if the pipeline wants them."""
    if request.pipeline.checkpoint.interval is None:
        return nullcontext()  # the process that asks for a savepoint coordinates it
    return Coordination(request, workplace, CoordinatorSettings.of(request.pipeline.checkpoint))


class Coordination:
    """A daemon thread, from entering the context to leaving it. One attempt of a run drives its checkpoints: the one
    with the lease. The others ask for the lease again and again and never wait, so that one of them goes on when the
    holder ends or dies: on its host at once, elsewhere when the lease has ended.

    Errors here never fail the attempt. If a checkpoint is under way then, the next holder of the lease fails it; if the
    attempt was the last one, the process that takes the checkpoint at the end of the run does.
    """

    def __init__(
        self,
        request: RunRequest,
        workplace: Workplace,
        settings: CoordinatorSettings,
        listeners: Sequence[Listener] = LISTENERS,
    ) -> None:
        self._request, self._workplace, self._settings = request, workplace, settings
        self._listeners = tuple(listeners)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"checkpoints of {request.run_id}", daemon=True)

    def __enter__(self) -> Coordination:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Joined without a limit: a checkpoint that is being written is finished, and the lease is given up for others.
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with naming_storage(self._workplace.settings):
                    self._coordinate()
            except LeaseHeld:
                log.debug("somebody else takes the checkpoints of run %s", self._request.run_id)
            except Exception as error:
                told_on_purpose = isinstance(error, StageholdError)
                subject = f"checkpoints of run {self._request.run_id}"
                log.warning("no %s are taken for a moment: %s", subject, error, exc_info=not told_on_purpose)
            self._ended.wait(self._workplace.settings.lease_seconds / 3)

    def _coordinate(self) -> None:
        """Drive the checkpoints.

        :raises LeaseHeld: another process does.
        """
        run = self._workplace.ledger.runs.get(self._request.run_id)
        lease = take_coordinator_lease(run, self._workplace)
        with kept_alive(lease, self._workplace) as heartbeat:
            checkpoints = RunCheckpoints(run, self._request, self._workplace, heartbeat)
            checkpoints.clear_up()
            driver = Driver(checkpoints, self._settings, self._listeners)
            while not self._ended.is_set():
                driver.turn()
                self._ended.wait(driver.pause)
            driver.turn()  # the attempt that has just ended counts as having done its part
            driver.suspend()


MOMENT = 0.1


def leave_checkpoint(request: RunRequest, workplace: Workplace) -> Exception | None:
    """Take a checkpoint if the run has ended, and none was taken since; or delete all checkpoints, if the run was
    cancelled and its author wants that. Tell everybody who has a part in them.

    Raises nothing: what the run has reached is on record without it, and the next end of the run takes a checkpoint. A
    process that dies between the end of the run and its checkpoint leaves none. It returns the error for which a stage
    that is to know of the checkpoint does not: nobody will tell it again by himself.
    """
    try:
        with naming_storage(workplace.settings):
            run = workplace.ledger.runs.get(request.run_id)
            if run.state in GLOBALLY_TERMINAL:
                _end(run, request, workplace)
    except NoticeFailed as failed:
        workplace.warn(request.run_id, KIND, f"checkpoint {failed.checkpoint}", str(failed))
        return failed
    except LeaseHeld:
        log.info("somebody else takes a checkpoint of run %s", request.run_id)
    except Exception as error:
        told_on_purpose = isinstance(error, StageholdError)
        log.warning("no checkpoint was left of run %s", request.run_id, exc_info=not told_on_purpose)
        workplace.progress(f"no checkpoint was left of run {request.run_id}: {error}")
        return error if any(stage.on_complete for stage in request.pipeline.stages) else None
    return None


def _end(run: Run, request: RunRequest, workplace: Workplace) -> None:
    """Take or delete the checkpoints at the end of the run.

    :raises LeaseHeld: another process is at it, and goes on.
    """
    lease = _lease_when_free(run, workplace)
    with kept_alive(lease, workplace) as heartbeat:
        checkpoints = RunCheckpoints(run, request, workplace, heartbeat)
        notices = Notices(checkpoints)
        if run.state in DELETED_AT[retention_of(request.pipeline.checkpoint)]:
            _delete_all(checkpoints)
        elif not checkpoints.is_covered():
            _take(checkpoints, notices)
        notices.tell()


def _lease_when_free(run: Run, workplace: Workplace) -> Lease:
    """The coordinator's lease, once it is free: its holder may be ending just now, or may have died elsewhere. If the
    lease is renewed beyond its present end, its holder is at work.
    """
    waited, step, longest = 0.0, MOMENT, None
    while True:
        try:
            return take_coordinator_lease(run, workplace)
        except LeaseHeld as held:
            longest = max(held.seconds_left, 0) + MOMENT if longest is None else longest
            if waited >= longest:
                raise
        step = min(2 * step, longest - waited)
        workplace.sleep(step)
        waited += step


def _delete_all(checkpoints: RunCheckpoints) -> None:
    run = checkpoints.run
    checkpoints.clear_up()
    _, deleted = checkpoints.store.end(retention_of(checkpoints.request.pipeline.checkpoint), run.state)
    for entry in deleted:
        checkpoints.discard(entry.id, entry.id)
    if deleted:
        numbers = ", ".join(str(entry.id) for entry in deleted)
        checkpoints.workplace.progress(f"deleted checkpoints {numbers} of run {run.run_id}, which was cancelled")


def _take(checkpoints: RunCheckpoints, notices: Notices) -> None:
    checkpoints.clear_up()
    before = checkpoints.store
    record = checkpoints.take(CheckpointTrigger.END_OF_RUN)
    notices.tell()  # before what it replaces is deleted
    _, dropped = before.add(CompletedCheckpoint(record.number, SnapshotKind.CHECKPOINT))
    for entry in dropped:
        checkpoints.discard(entry.id, record.number)
    say(record, checkpoints.workplace)
