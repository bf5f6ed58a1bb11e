"""Threads that run one at a time, from one step to the next, and can die at each:
a race whose every order a test can choose.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Killed(BaseException):
    """Unwinds a thread that was killed. Whatever it would still do to ledger or lake raises this as well,
    as after a SIGKILL.
    """


class Stepper:
    """Work in a thread that stands still at every `pause` until it is told to go on."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.at, self.ended = "its beginning", False
        self.error: BaseException | None = None
        self._work, self._killed = work, False
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it go on to its next pause, or its end."""
        if not self.ended:
            self._go.release()
            self._stands.acquire()

    def go_to(self, place: str, most: int = 400) -> bool:
        """Let it go on until it stands at ``place``; False if it does not get there."""
        for _ in range(most):
            self.step()
            if self.ended or self.at == place:
                break
        return self.at == place and not self.ended

    def kill(self) -> None:
        """End it where it stands: nothing it would still do comes about."""
        self._killed = True
        self.step()
        self._thread.join()

    def stand(self, place: str) -> None:
        if self._killed:
            raise Killed
        self.at = place
        self._stands.release()
        self._go.acquire()
        if self._killed:
            raise Killed

    def _run(self) -> None:
        _here.stepper = self
        self._go.acquire()
        try:
            if not self._killed:
                self._work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self.ended = True
        self._stands.release()


_here = threading.local()


def pause(place: str) -> None:
    """A step of whatever runs in a stepper's thread; nothing at all in other threads."""
    stepper: Stepper | None = getattr(_here, "stepper", None)
    if stepper is not None:
        stepper.stand(place)


@contextmanager
def indivisible(name: str) -> Iterator[None]:
    """One step, with a pause before it and one after it, and none inside."""
    pause(f"before {name}")
    stepper, _here.stepper = getattr(_here, "stepper", None), None
    try:
        yield
    finally:
        _here.stepper = stepper
    pause(f"after {name}")
