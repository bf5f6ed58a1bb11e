"""The thread in which an attempt takes the periodic checkpoints of its run, while it has the coordinator lease."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from stagehold.checkpoints.settings import CoordinatorSettings
from stagehold.errors import LeaseHeld, StageholdError
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.records import Lease, Run
from stagehold.run.checkpoints.coordinator_lease import take_coordinator_lease
from stagehold.run.checkpoints.driving import Driver
from stagehold.run.checkpoints.listeners import LISTENERS, Listener
from stagehold.run.checkpoints.taking import RunCheckpoints
from stagehold.run.equipment.storage_failures import naming_storage
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.planning.planning import RunRequest

log = logging.getLogger(__name__)


def coordinating(request: RunRequest, workplace: Workplace) -> AbstractContextManager[object]:
    """Have periodic checkpoints taken while the block works, if the pipeline wants them."""
    if request.pipeline.checkpoint.interval is None:
        return nullcontext()  # whoever asks for a savepoint coordinates it
    return Coordination(request, workplace, CoordinatorSettings.of(request.pipeline.checkpoint))


class Coordination:
    """A daemon thread from entering to leaving the context. Of all attempts of a run, one drives its checkpoints: who
    has the lease. The others ask for it again and again and never wait, so one of them goes on where the holder ends or
    dies: on its host at once, elsewhere when its lease has ended.

    Nothing that goes wrong here fails the attempt. A checkpoint that is under way then is failed by whoever has the
    lease next; if the attempt was the last one, by whoever takes the checkpoint at the end of the run.
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
        """:raises LeaseHeld: somebody else does."""
        ledger = self._workplace.ledger
        run = ledger.runs.get(self._request.run_id)
        lease = take_coordinator_lease(run, self._workplace)
        try:
            self._drive(run, lease)
        finally:
            ledger.leases.release(lease)

    def _drive(self, run: Run, lease: Lease) -> None:
        with Heartbeat(self._workplace.ledger, lease, self._workplace.settings.lease_seconds) as heartbeat:
            checkpoints = RunCheckpoints(run, self._request, self._workplace, heartbeat)
            checkpoints.clear_up()
            driver = Driver(checkpoints, self._settings, self._listeners)
            while not self._ended.is_set():
                driver.turn()
                self._ended.wait(driver.pause)
            driver.turn()  # the attempt that ended just now counts as having done its part
            driver.suspend()
