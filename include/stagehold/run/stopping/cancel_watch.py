"""Carries out in the process that drives a run what `stagehold cancel` asks of it, and kills it if it does not react
(Flink's task cancellation watchdog).
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import LedgerUnavailable, UnknownName
from stagehold.ledger.attempts import Failure
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import TRACE, Attempt, Event, RunState
from stagehold.model.states import AttemptEvent
from stagehold.run.stopping.stopping import at_work, settle_cancelled
from stagehold.settings import Settings
from stagehold.spark.processes import kill_own_group
from stagehold.spec.settings.run_settings import CancellationSettings

POLL_SECONDS = 1.0
INTERRUPT = signal.SIGUSR1  # a shell may have had us ignore SIGINT

log = logging.getLogger(__name__)


@contextmanager
def cancel_watch(
    run_id: str, cancellation: CancellationSettings, settings: Settings, *, by_any: bool = False
) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block, which the main thread runs, when the run is asked to be cancelled; once
    more after each ``interval``. If the block has not ended by ``timeout``, say so in the ledger and end this process
    and its group with SIGKILL. Another thread's signals are not handled, so elsewhere nothing is watched.

    What is asked for while the ledger is away is heard when it is back.

    :param by_any: whether it counts how ever the run came to be cancelled, as for a process that nobody may be left to
        interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = threading.Event()
    with open_ledger(settings) as ledger, _interruptible():
        watch = _Watch(run_id, cancellation, ledger, ended, by_any=by_any)
        thread = threading.Thread(target=watch.look, name=f"cancel watch of {run_id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def _interruptible() -> Iterator[None]:
    before = signal.signal(INTERRUPT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(INTERRUPT, before)


class _Watch:
    def __init__(
        self,
        run_id: str,
        cancellation: CancellationSettings,
        ledger: Ledger,
        ended: threading.Event,
        *,
        by_any: bool,
    ) -> None:
        self._run_id, self._ledger, self._ended, self._by_any = run_id, ledger, ended, by_any
        self._interval, self._timeout = cancellation.interval.total_seconds(), cancellation.timeout.total_seconds()

    def look(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            if self._asked():
                return self._insist()

    def _asked(self) -> bool:
        try:
            run = self._ledger.runs.get(self._run_id)
            return run.cancel_asked_at is not None or (self._by_any and run.state is RunState.CANCELLING)
        except UnknownName:  # it has not begun
            return False
        except LedgerUnavailable as error:
            log.info("cannot see whether %s is to be cancelled: %s", self._run_id, error)
            return False

    def _insist(self) -> None:
        deadline = time.monotonic() + self._timeout if self._timeout else float("inf")
        while time.monotonic() < deadline:
            signal.pthread_kill(threading.main_thread().ident or 0, INTERRUPT)
            if self._ended.wait(min(self._interval, deadline - time.monotonic())):
                return
        self._kill()

    def _kill(self) -> None:
        try:
            self._record()
        except Exception as error:  # noqa: BLE001 - whatever it is, the process goes; its lease then ends by itself
            log.warning("%s is killed, which could not be recorded: %s", self._run_id, error)
        kill_own_group()

    def _record(self) -> None:
        ledger = self._ledger
        late = f"it had not reacted after {self._timeout:g} s (cancellation.timeout)"
        why = f"cancelled; {late}, so its process was killed"
        for attempt in at_work(ledger.attempts.of_run(self._run_id), ledger):
            events = (AttemptEvent.CANCEL, AttemptEvent.REPORTED_CANCELED)
            if ledger.attempts.apply(attempt.attempt_id, *events, failure=Failure(why)):
                self._tell(attempt, why)
        settle_cancelled(self._run_id, ledger)

    def _tell(self, attempt: Attempt, why: str) -> None:
        """Tell it with where the main thread stands: that line is what has to be mended."""
        event = partial(Event, self._run_id, recorded_at=datetime.now(UTC))
        self._ledger.events.append(event(kind="cancelled", subject=attempt.subject, text=why))
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        stack = "".join(traceback.format_stack(frame))
        self._ledger.events.append(event(kind=TRACE, subject=attempt.attempt_id, text=stack))
