"""What a run is restored from: which checkpoints come into question, in which order, and which of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.errors import RestoreSourceUnusable

LATEST = "latest"  # what a user writes for the first source that verifies


class Origin(StrEnum):
    """Whose snapshot it is, seen from the run that is to be restored."""

    OWN = "checkpoint of this run"
    OTHER_RUN = "checkpoint of another run"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True)
class RestoreSource:
    """A checkpoint or savepoint that could be restored. ``named`` is the one the user asked for."""

    origin: Origin
    checkpoint: int
    run_id: str
    taken_at: datetime
    named: bool = False

    def __str__(self) -> str:
        return f"{self.origin} {self.checkpoint} ({self.run_id})"


@dataclass(frozen=True)
class Choice:
    """The source that is taken, None to start empty, and those before it that could not be, each with the reason."""

    source: RestoreSource | None
    passed_over: tuple[tuple[RestoreSource, str], ...]


def in_order(sources: Iterable[RestoreSource]) -> tuple[RestoreSource, ...]:
    """Newest first: this run's, then the one the user named, and only if none was named other runs' and savepoints.

    The run's own checkpoint comes before the named one because the run was started from that one already: taking it
    again would undo what was done since.
    """
    newest_first = sorted(sources, key=lambda source: (source.taken_at, source.checkpoint), reverse=True)
    of_origin = {origin: [source for source in newest_first if source.origin is origin] for origin in Origin}
    named = [source for source in newest_first if source.named and source.origin is not Origin.OWN]
    return (*of_origin[Origin.OWN], *(named or (*of_origin[Origin.OTHER_RUN], *of_origin[Origin.SAVEPOINT])))


def choose(sources: Iterable[RestoreSource], verify: Callable[[RestoreSource], str | None]) -> Choice:
    """The first source that verifies. Without any the run starts empty, unless the user named one.

    :param verify: why a source cannot be read, None if it can; asked only until one can.
    :raises RestoreSourceUnusable: the named source does not verify, and none before it does.
    """
    passed_over: list[tuple[RestoreSource, str]] = []
    for source in in_order(sources):
        problem = verify(source)
        if problem is None:
            return Choice(source, tuple(passed_over))
        if source.named:
            raise RestoreSourceUnusable(str(source), problem)
        passed_over.append((source, problem))
    return Choice(None, tuple(passed_over))


def non_restored_allowed(source: RestoreSource, *, flag: bool, failover: bool) -> bool:
    """Whether state without a stage may be left behind.

    In a failover always: the run has been going on without it since its start. At a start from its own checkpoint
    never, because that was written by this very pipeline. Else as the user says.
    """
    return failover or (flag and source.origin is not Origin.OWN)
