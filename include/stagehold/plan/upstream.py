"""One input of a stage as the partitions of that stage see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from stagehold.model.compute_key import digest
from stagehold.model.spec import Exchange, Input, Pipeline
from stagehold.plan.decisions import Action, Decision
from stagehold.plan.reasons import Place, Reason, Unexplained, because


class Upstream:
    """Answers about what one partition reads of the producer. Those of all-to-all inputs are found once, not per partition."""

    def __init__(self, edge: Input, decisions: Sequence[Decision], pipeline: Pipeline) -> None:
        self._decisions, self._cutoff = decisions, pipeline.early_cutoff
        self._pointwise = edge.exchange is Exchange.FORWARD
        self.along = None if pipeline.stage(edge.stage).output.type.stored else edge.stage  # of which nothing is recorded

    def obstacle(self, partition: int) -> Decision | None:
        """The decision a reader inherits when it cannot be compared yet: it runs, or is blocked, after this input."""
        return self._first_obstacle([self._decisions[partition]]) if self._pointwise else self._whole_obstacle

    def identity(self, partition: int) -> str:
        """What the reader's key says of this input."""
        return self._identity(self._decisions[partition]) if self._pointwise else self._whole_identity

    def healed(self, partition: int) -> Place | None:
        """A partition to heal that the reader was made from, directly or not."""
        return healed_place(self._decisions[partition]) if self._pointwise else self._whole_healed

    def surprise(self, partition: int) -> Reason | None:
        """That this input was computed anew and came out different for no good reason."""
        return _told_by([self._decisions[partition]]) if self._pointwise else self._whole_surprise

    @cached_property
    def _whole_obstacle(self) -> Decision | None:
        return self._first_obstacle(self._decisions)

    @cached_property
    def _whole_identity(self) -> str:
        return digest(self._identity(decision) for decision in self._decisions)

    @cached_property
    def _whole_healed(self) -> Place | None:
        return next((place for decision in self._decisions if (place := healed_place(decision))), None)

    @cached_property
    def _whole_surprise(self) -> Reason | None:
        return _told_by(self._decisions)

    def _first_obstacle(self, decisions: Iterable[Decision]) -> Decision | None:
        computing: Decision | None = None
        for decision in decisions:
            if decision.action is Action.BLOCKED:
                why = f"was {decision.foreign}" if decision.foreign else "its gate blocked"
                reason = because("waits for ", (decision.stage, decision.partition), f", which {why}")
                return Decision(decision.stage, decision.partition, Action.BLOCKED, reason, foreign=decision.foreign)
            if decision.action.computes and computing is None:
                computing = decision
        if computing is None:
            return None
        hope = ", unless that gives equal data" if self._cutoff else ""
        reason = because("reads ", (computing.stage, computing.partition), f", which runs again{hope}")
        return Decision(computing.stage, computing.partition, Action.RUN, reason)

    def _identity(self, decision: Decision) -> str:
        """Content, and how it was made unless that does not matter: a partition computed again to equal data is the same one."""
        record = decision.record
        if record is None:
            return str(decision.key)
        return record.fingerprint if self._cutoff else digest((record.compute_key, record.fingerprint))


def healed_place(decision: Decision) -> Place | None:
    return (decision.stage, decision.partition) if decision.action is Action.HEAL else decision.hinges_on


def _told_by(decisions: Iterable[Decision]) -> Reason | None:
    odd = (one.record for one in decisions if one.record is not None and one.record.unexplained)
    return next((because((record.cell.stage, record.partition), " ", Unexplained(record.reason or "")) for record in odd), None)
