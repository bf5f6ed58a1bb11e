"""Work that goes from one step to the next, one of several at a time, and can die at each:
a race whose every order a test can choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

T = TypeVar("T")


class Killed(BaseException):
    """Unwinds work that was killed. Whatever it would still do to ledger or lake raises this as well,
    as after a SIGKILL.
    """


class Stepper:
    """Work that stands still at every `pause` until it is told to go on. All take turns in one thread: to go from one
    to another waits for nobody, however busy the machine is. Threads that the work starts have no steps.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.at, self.ended = "its beginning", False
        self.error: BaseException | None = None
        self.done: object = None
        self._work, self._killed, self._interrupted = work, False, False
        self._turn = _Turn(self._run)
        self._turn.stepper = self

    def step(self) -> None:
        """Let it go on to its next pause, or its end."""
        if not self.ended:
            self._turn.parent = getcurrent()
            self._turn.switch()

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

    def interrupt(self) -> None:
        """Have it end where it stands, as somebody's Ctrl-C does: it goes on to the next pause of what it does then."""
        self._interrupted = True
        self.step()

    def stand(self, place: str) -> None:
        if not self._killed:
            self.at = place
            self._yield_turn()
        if self._killed:
            raise Killed
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def _yield_turn(self) -> None:
        assert self._turn.parent is not None
        try:
            self._turn.parent.switch()
        except GreenletExit:  # nobody can tell it to go on any more
            self._killed = True

    def _run(self) -> None:
        try:
            if not self._killed:
                self.done = self._work()
        except (Exception, Killed, KeyboardInterrupt) as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self.ended = True


class _Turn(greenlet):
    stepper: Stepper | None = None


def pause(place: str) -> None:
    """A step of whatever a stepper works on; nothing at all elsewhere."""
    stepper: Stepper | None = getattr(getcurrent(), "stepper", None)
    if stepper is not None:
        stepper.stand(place)


@contextmanager
def indivisible(name: str) -> Iterator[None]:
    """One step, with a pause before it and one after it, and none inside."""
    pause(f"before {name}")
    turn = getcurrent()
    stepper = getattr(turn, "stepper", None)
    if stepper is not None:
        turn.stepper = None
    try:
        yield
    finally:
        if stepper is not None:
            turn.stepper = stepper
    pause(f"after {name}")


def in_turn(work: Callable[[], T], /) -> Future[T]:
    """Does at once what could be done beside the work, which so has its steps."""
    done = Future[T]()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        done.set_exception(error)
    return done
