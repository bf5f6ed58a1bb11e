"""Interrupts a call to Spark that makes no progress, once it is written down what everybody was doing.

What a stalled call waits for can be seen only in the stacks of all processes behind it: this one, the local server, and
its Python workers; and only for as long as it waits.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from stagehold.errors import CallStalled
from stagehold.lake.store.location import path_safe
from stagehold.model.pulse import QueryStage
from stagehold.settings import Settings
from stagehold.spark.processes import catches, is_java, session_members
from stagehold.spark.server.server import running_server
from stagehold.spark.server.server_record import python_stacks, server_log

MOST_SECONDS_BETWEEN_LOOKS = 5.0
LONGEST_WAIT, QUIET_SECONDS = 10.0, 1.0  # for what a signal has written

log = logging.getLogger(__name__)


class Watchdog:
    """Watches a clock in its block; ``stalled`` is the error to raise for whatever the call ended with."""

    def __init__(
        self, clock: CallClock, patience: float, *, dump: Callable[[], Path], interrupt: Callable[[], None]
    ) -> None:
        """
        :param dump: writes down what everybody is doing, and gives the folder of the stacks.
        :param interrupt: has the stalled call end with some error.
        """
        self.stalled: CallStalled | None = None
        self._clock, self._patience, self._dump, self._interrupt = clock, patience, dump, interrupt
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog of calls to Spark", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(min(self._patience / 4, MOST_SECONDS_BETWEEN_LOOKS)):
            longest = self._clock.longest()
            if longest and longest[1] >= self._patience:
                return self._report_stall(*longest)

    def _report_stall(self, call: str, seconds: float) -> None:
        folder = None
        try:
            folder = self._dump()
        except Exception:
            log.exception("no stacks could be written")
        self.stalled = CallStalled(call, seconds, str(folder) if folder else None)
        log.warning("%s", self.stalled)
        self._interrupt()


class Call:
    """The call of one thread, without progress since ``since``. An execution may be several calls to gRPC."""

    def __init__(self, name: str, operation: str, since: float) -> None:
        self.name, self.operation, self.since = name, operation, since
        self.waiting, self.seen = True, b""


class CallClock:
    """How long each call to Spark that is under way has made no progress. It is told of every call by whoever makes it,
    each in a thread of its own, and asked by the watchdog. ``now`` gives the time in seconds. ``tell_stages`` is told
    how the stages of the query stand with each report of the server's, ``tell_observed`` what a query has observed.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.tell_stages: Callable[[Sequence[QueryStage]], None] = _tell_nobody
        self.tell_observed: Callable[[str, Sequence[int]], None] = lambda _name, _values: None
        self._lock = threading.Lock()
        self._calls: dict[int, Call] = {}

    @contextmanager
    def waiting(self, name: str, operation: str = "") -> Iterator[Call]:
        """Note that this thread waits for the server in the block. A wait for the same operation as the last one goes
        on.
        """
        thread = threading.get_ident()
        with self._lock:
            known = self._calls.get(thread)
            if known is None or not operation or known.operation != operation:
                known = self._calls[thread] = Call(name, operation, self._now())
            known.waiting = True
        try:
            yield known
        finally:
            known.waiting = False

    def progressed(self, call: Call) -> None:
        call.since = self._now()

    def longest(self) -> tuple[str, float] | None:
        """The call that has waited longest without progress, and for how many seconds; None when none is under way."""
        now = self._now()
        with self._lock:
            waits = [(now - call.since, call.name) for call in self._calls.values() if call.waiting]
        if not waits:
            return None
        seconds, name = max(waits)
        return name, seconds


def _tell_nobody(stages: Sequence[QueryStage]) -> None:
    """Nobody measures what the session's queries do."""


def dump_stacks(settings: Settings, attempt_id: str) -> Path:
    """A new folder in HOME/dumps with the stacks of every process that can be asked; a remote server cannot."""
    folder = settings.home_path / "dumps" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{path_safe(attempt_id)}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "client.txt").open("w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    server = None if settings.spark_remote else running_server(settings)
    if server is None:
        return folder
    if is_java(server.pid):
        (folder / "server.txt").write_bytes(stacks_logged([server.pid], signal.SIGQUIT, server_log(settings)))
    for worker in session_members(server.pid):
        if catches(worker, signal.SIGUSR1) and worker != server.pid:
            stacks = stacks_logged([worker], signal.SIGUSR1, python_stacks(settings))
            (folder / f"python-{worker}.txt").write_bytes(stacks)
    return folder


def stacks_logged(
    pids: Sequence[int], number: signal.Signals, log: Path, quiet_seconds: float = QUIET_SECONDS
) -> bytes:
    """What a log gains once the processes are sent a signal, until it is quiet."""
    before = size = log.stat().st_size if log.exists() else 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        time.sleep(quiet_seconds)
        now = log.stat().st_size if log.exists() else 0
        if now == size > before:
            break
        size = now
    with suppress(FileNotFoundError), log.open("rb") as file:
        file.seek(before)
        return file.read()
    return b""
