"""What was decided about a failure travels with its error, so that whoever launched the attempt acts on it."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.model.records import FailureClass
from stagehold.plan.restart.replay import RestartDecision

_ATTRIBUTE = "__stagehold_verdict__"


@dataclass(frozen=True)
class Verdict:
    """An attempt's failure as it was recorded. ``decision`` is None for an attempt that was overtaken."""

    kind: FailureClass
    rule: str
    decision: RestartDecision | None

    @property
    def restarts_at_once(self) -> bool:
        """Whether another attempt may begin without any delay."""
        return self.decision is not None and self.decision.restart and not self.decision.delay

    def __str__(self) -> str:
        reason = self.decision.reason if self.decision else "a newer attempt goes on"
        return f"{self.kind} failure (rule {self.rule}): {reason}"


def attach(error: BaseException, verdict: Verdict) -> None:
    """Also as a note, so that it stands below the error wherever that is printed."""
    setattr(error, _ATTRIBUTE, verdict)
    error.add_note(str(verdict))


def verdict_of(error: BaseException) -> Verdict | None:
    """None when nothing was recorded: no attempt had begun, or the ledger was away."""
    return getattr(error, _ATTRIBUTE, None)
