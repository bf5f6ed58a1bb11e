"""What every error is, whatever its family: one that another try may help, or one that it cannot."""

from __future__ import annotations

from collections.abc import Sequence


class StageholdError(Exception):
    """Base of every error in this module; ``str(error)`` is the whole text for the user."""


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
