"""An input of a stage as the partitions of that stage see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from stagehold.model.keys.compute_key import digest
from stagehold.model.partition_set import PartitionSet
from stagehold.plan.grounds.reasons import Place, Places, Reason, Unexplained, because
from stagehold.plan.resume.decisions import Action, BlockedDecision, Decision, RunDecision
from stagehold.spec.pipeline import Exchange, Input, Pipeline


class Upstream:
    """Answers about what one partition reads of the producer.
    Those of all-to-all inputs are found once, not per partition.
    """

    def __init__(self, edge: Input, decisions: Sequence[Decision], pipeline: Pipeline) -> None:
        self._stage, self._decisions, self._cutoff = edge.stage, decisions, pipeline.early_cutoff
        self.is_pointwise = edge.exchange is Exchange.FORWARD
        # whose content is in no reader's key, though it may be stored
        self.along = None if pipeline.stage(edge.stage).output.type.stored else edge.stage

    def obstacle(self, partition: int) -> Decision | None:
        """The decision a reader inherits when it cannot be compared yet: it runs, or is blocked, after this input."""
        return self._first_obstacle([self._decisions[partition]]) if self.is_pointwise else self._whole_obstacle

    def identity(self, partition: int) -> str:
        """What the reader's key says of this input."""
        return self._identity(self._decisions[partition]) if self.is_pointwise else self._whole_identity

    def healed(self, partition: int) -> Place | None:
        """A partition to heal that the reader was made from, directly or not."""
        return self._healed([self._decisions[partition]]) if self.is_pointwise else self._whole_healed

    def unexplained_change(self, partition: int) -> Reason | None:
        """The reason if this input was computed anew and came out different though nothing explains it."""
        return self._unexplained([self._decisions[partition]]) if self.is_pointwise else self._whole_unexplained

    def ended(self, partition: int) -> Place | None:
        """A partition that this input is made from, or is, and that may be read no more."""
        return self._ended([self._decisions[partition]]) if self.is_pointwise else self._whole_ended

    @cached_property
    def _whole_ended(self) -> Place | None:
        return self._ended(self._decisions)

    def waived(self, partition: int) -> Place | None:
        """A partition that the reader is made from, directly or not, and that may be read by a waiver alone."""
        return self._waived([self._decisions[partition]]) if self.is_pointwise else self._whole_waived

    @cached_property
    def _whole_waived(self) -> Place | None:
        return self._waived(self._decisions)

    @cached_property
    def _whole_obstacle(self) -> Decision | None:
        return self._first_obstacle(self._decisions)

    @cached_property
    def _whole_identity(self) -> str:
        return digest(self._identity(decision) for decision in self._decisions)

    @cached_property
    def _whole_healed(self) -> Place | None:
        return self._healed(self._decisions)

    @cached_property
    def _whole_unexplained(self) -> Reason | None:
        return self._unexplained(self._decisions)

    def _ended(self, decisions: Iterable[Decision]) -> Place | None:
        return next((decision.ended.place for decision in decisions if decision.ended), None)

    def _first_obstacle(self, decisions: Iterable[Decision]) -> Decision | None:
        computing: list[int] = []
        for decision in decisions:
            if isinstance(decision, BlockedDecision):
                reason = because("waits for ", decision.place, f", which {_why(decision)}")
                return replace(decision, reason=reason, key=None, record=None, ended=None)
            if decision.action.computes:
                computing.append(decision.partition)
        if not computing:
            return None
        hope = ", unless that gives equal data" if self._cutoff else ""
        reason = because("reads ", Places(self._stage, PartitionSet(computing)), f", which runs again{hope}")
        return RunDecision(self._stage, computing[0], reason)

    def _identity(self, decision: Decision) -> str:
        """Content, and how it was made unless that does not matter:
        a partition computed again to equal data is the same one.
        """
        record = decision.record
        if record is None or self.along:
            return str(decision.key or (decision.ended and decision.ended.presumed))
        return record.fingerprint if self._cutoff else digest((record.compute_key, record.fingerprint))

    def _healed(self, decisions: Iterable[Decision]) -> Place | None:
        heals = (
            decision.place if decision.action is Action.HEAL and not self.along else decision.hinges_on
            for decision in decisions
        )
        return next(filter(None, heals), None)

    def _waived(self, decisions: Iterable[Decision]) -> Place | None:
        places = (
            decision.place if decision.reused and decision.reused.refused and not self.along else decision.rests_on
            for decision in decisions
        )
        return next(filter(None, places), None)

    def _unexplained(self, decisions: Iterable[Decision]) -> Reason | None:
        records = (decision.record for decision in decisions if decision.record is not None and not self.along)
        odd = (
            because((record.cell.stage, record.partition), " ", Unexplained(record.reason or ""))
            for record in records
            if record.unexplained
        )
        return next(odd, None)


def _why(blocked: BlockedDecision) -> str:
    if blocked.gap:
        return f"waits for {blocked.gap.interval}"
    return f"was {blocked.foreign}" if blocked.foreign else "its gate blocked"
