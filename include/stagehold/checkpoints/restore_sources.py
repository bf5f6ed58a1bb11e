"""What a run is restored from: which checkpoints come into question, in which order, and which of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

LATEST = "latest"  # what a user writes for the first source that verifies
LATEST_OR_NONE = "latest_or_none"  # likewise, and for nothing where there is no source at all
NOTHING = ""  # in the place of the address of a checkpoint: there was none


class Origin(StrEnum):
    """Whose snapshot it is, seen from the run that is to be restored."""

    OWN = "checkpoint of this run"
    OTHER_RUN = "checkpoint of another run"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True)
class RestoreSource:
    """A checkpoint or savepoint that could be restored."""

    origin: Origin
    checkpoint: int
    run_id: str
    taken_at: datetime

    def __str__(self) -> str:
        return f"{self.origin} {self.checkpoint} ({self.run_id})"


PassedOver = tuple[tuple[RestoreSource, str], ...]  # sources that could not be taken, each with the reason


def in_order(sources: Iterable[RestoreSource]) -> tuple[RestoreSource, ...]:
    """This run's, then other runs', then savepoints; of each the newest first."""
    newest_first = sorted(sources, key=lambda source: (source.taken_at, source.checkpoint), reverse=True)
    return tuple(source for origin in Origin for source in newest_first if source.origin is origin)


def choose(
    sources: Iterable[RestoreSource], verify: Callable[[RestoreSource], str | None]
) -> tuple[RestoreSource | None, PassedOver]:
    """The first source that verifies, None if there is none, and those before it that do not.

    :param verify: why a source cannot be read, None if it can; asked only until one can.
    """
    passed_over: list[tuple[RestoreSource, str]] = []
    for source in in_order(sources):
        problem = verify(source)
        if problem is None:
            return source, tuple(passed_over)
        passed_over.append((source, problem))
    return None, tuple(passed_over)
