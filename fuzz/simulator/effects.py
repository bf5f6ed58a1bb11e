"""What an actor does to ledger or lake, one step at a time, and what can go wrong with each step.

An actor stands still before every effect. Whoever lets it go on says what becomes of the effect: it comes about, or one
of the faults happens. An actor that is killed where it stands does nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeVar

from greenlet import getcurrent
from tests.run.protocol.stepper import Stepper, pause

T = TypeVar("T")


class Fault(StrEnum):
    LOST_REQUEST = "its request is lost"
    LOST_ANSWER = "its answer is lost"
    HALF = "it stops half-way"  # a transaction whose facts the lake has, and that is not committed
    DELAYED = "its request is on its way"  # and it hears nothing; the request may arrive when others have gone on
    REPEATED = "its request arrives twice"


class Unreachable(OSError):
    """A store or a database did not answer."""


class Effects:
    """The steps of all actors of a world. ``changes`` counts those that came about, ``late`` are requests that are on
    their way.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.late: list[Callable[[], object]] = []
        self.next_fault: Fault | None = None

    def carry_out(self, name: str, effect: Callable[[], T]) -> T:
        """One step of the actor that is at work; done at once if nobody is."""
        if stepping() is None:
            return effect()
        pause(name)
        fault = self.take_fault()
        if fault is Fault.LOST_REQUEST:
            raise Unreachable(f"{fault}: {name}")
        self.changes += 1
        done = effect()
        if fault is not None:
            raise Unreachable(f"{fault}: {name}")
        return done

    @contextmanager
    def one_step(self, name: str) -> Iterator[Fault | None]:
        """One step with all that is in the block; gives the fault that it meets."""
        pause(name)
        turn, self.changes = getcurrent(), self.changes + 1
        turn.stepper, stepper = None, turn.stepper
        try:
            yield self.take_fault()
        finally:
            turn.stepper = stepper

    def look(self, name: str) -> None:
        """A step that changes nothing: others may go on before the actor looks at what there is."""
        if stepping() is not None:
            pause(name)

    def take_fault(self) -> Fault | None:
        """The fault that the step under way meets."""
        fault, self.next_fault = self.next_fault, None
        return fault


def stepping() -> Stepper | None:
    """The actor that is at work; None in what happens between two steps, and inside of one."""
    found: Stepper | None = getattr(getcurrent(), "stepper", None)
    return found
