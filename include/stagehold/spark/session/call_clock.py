"""How long each call to Spark that is under way has made no progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Call:
    """The call of one thread, without progress since ``since``. An execution may be several calls to gRPC."""

    name: str
    operation: str
    since: float
    waiting: bool = True
    seen: bytes = b""


class CallClock:
    """Told of every call by whoever makes it, each in a thread of its own; asked by the watchdog."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[int, Call] = {}

    @contextmanager
    def waiting(self, name: str, operation: str = "") -> Iterator[Call]:
        """This thread waits for the server in the block. A wait for the same operation as the last one goes on."""
        thread = threading.get_ident()
        with self._lock:
            known = self._calls.get(thread)
            if known is None or not operation or known.operation != operation:
                known = self._calls[thread] = Call(name, operation, time.monotonic())
            known.waiting = True
        try:
            yield known
        finally:
            known.waiting = False

    def progressed(self, call: Call) -> None:
        call.since = time.monotonic()

    def longest(self) -> tuple[str, float] | None:
        """The call that has waited longest without progress, and for how many seconds; None when none is under way."""
        now = time.monotonic()
        with self._lock:
            waits = [(now - call.since, call.name) for call in self._calls.values() if call.waiting]
        if not waits:
            return None
        seconds, name = max(waits)
        return name, seconds
