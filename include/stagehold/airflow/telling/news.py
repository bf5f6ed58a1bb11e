"""What a notifier has to tell, and the text of it. Pure: what has to be known is handed in."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.model.standing import Standing
from stagehold.spec.settings.airflow_settings import Hook

LONGEST = 300  # letters of a message, so that a phone shows it whole
SHORTEST_TEXT = 80  # letters that stay of it, however long its link is


@dataclass(frozen=True)
class Remaining:
    """What Resume would do: how many partitions it runs and reuses, and how many a gate keeps back."""

    run: int
    reuse: int
    blocked: int = 0

    def __str__(self) -> str:
        held = f", {self.blocked} stay blocked" if self.blocked else ""
        return f"runs {self.run} and reuses {self.reuse} partitions{held}"


@dataclass(frozen=True)
class Progressed:
    """How far a stage, or the stages of one task, have come."""

    stage: str
    standing: Standing

    @property
    def consumable(self) -> int:
        return self.standing.consumable

    @property
    def partitions(self) -> int:
        return self.standing.total

    def __str__(self) -> str:
        return f"{self.stage}, {self.standing.amount}"


@dataclass(frozen=True)
class RunNews:
    """What templates find as `stagehold`.

    ``progressed`` is None if no task of the run got so far that one could blame it, ``remaining`` if no plan can be
    made; ``cause`` is one line of text.
    """

    hook: Hook
    pipeline: str
    interval: str
    run_id: str
    cause: str
    link: str
    progressed: Progressed | None = None
    remaining: Remaining | None = None

    @property
    def message(self) -> str:
        """All of it, in plain text that fits a phone."""
        room = max(LONGEST - len(self.link) - 1, SHORTEST_TEXT)
        fixed = len(self._text(""))
        text = self._text(_shortened(self.cause, max(room - fixed, 0)))
        return f"{_shortened(text, room)} {self.link}"

    def _text(self, cause: str) -> str:
        subject, at = f"{self.pipeline} {self.interval}", f" at {self.progressed}" if self.progressed else ""
        match self.hook:
            case Hook.ON_FAILURE:
                resume = f" Resume {self.remaining}." if self.remaining else ""
                return f"{subject} failed{at}: {_sentence(cause)}{resume}"
            case Hook.ON_GATE_WARNING:
                resume = f" A resume now {self.remaining}." if self.remaining else ""
                return f"{subject}, gate{at}: {_sentence(cause)}{resume}"
            case Hook.ON_RESUME:
                goes = f", {self.remaining}" if self.remaining else ""
                return f"{subject} goes on{at}{goes}. Before: {_sentence(cause)}"


def _sentence(cause: str) -> str:
    return cause if cause.endswith((".", "!", "?", "...")) else f"{cause}."


def _shortened(text: str, room: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= room else f"{line[: max(room - 3, 0)].rstrip()}..."
