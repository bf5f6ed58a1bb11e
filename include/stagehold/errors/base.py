"""What every error is, whatever its family: one that another try may help, or one that it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class StageholdError(Exception):
    """Base of every error in this module; ``str(error)`` is the whole text for the user."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, with its notes, for another process: its text is not made once more from its facts."""
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(kind: type[StageholdError], args: tuple[Any, ...], facts: dict[str, Any]) -> StageholdError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class Terminal(StageholdError):
    """Trying again with nothing changed cannot succeed."""


class Transient(StageholdError):
    """Trying again may succeed; nothing was lost."""


def ranges(numbers: Sequence[int]) -> str:
    """Neighbours as one range: ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] + 1 == number:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def first_of(names: Sequence[str], shown: int = 4) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
