"""Leaves partitions alone that a run was not told to work on, unless something that it does needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, Decision, ReuseDecision

LEFT = "left as it is: not asked for, and nothing that runs needs it"


@dataclass(frozen=True)
class Confinement:
    """The ``stages`` in which a run works. With ``only_recorded`` it leaves partitions without a record alone there,
    too.
    """

    stages: frozenset[str]
    only_recorded: bool = False

    def leaves_nothing(self, stages: Collection[str]) -> bool:
        """Whether a run of these stages does the same as a run that is not confined."""
        return not self.only_recorded and self.stages.issuperset(stages)

    def leaves(self, decision: Decision) -> bool:
        """Whether the partition is left alone unless something needs it."""
        if decision.action is Action.REUSE:
            return False
        return decision.stage not in self.stages or (self.only_recorded and not _is_recorded(decision))

    def wants(self, stage: str) -> bool:
        """Whether lost data of the stage is to be healed even if nothing reads it."""
        return stage in self.stages and not self.only_recorded


def leave_alone(confinement: Confinement, drafts: dict[str, list[Decision]]) -> Mapping[str, list[Decision]]:
    """Have the drafts do nothing about partitions that are left alone. Returns the drafts of the stages concerned, as
    they were.
    """
    before: dict[str, list[Decision]] = {}
    for stage, decisions in drafts.items():
        if any(confinement.leaves(decision) for decision in decisions):
            before[stage] = decisions
            drafts[stage] = [_left(decision) if confinement.leaves(decision) else decision for decision in decisions]
    return before


def _left(decision: Decision) -> Decision:
    """The decision to do nothing. It has no record: before the partition is read, it has to be computed, judged or let
    through.
    """
    return ReuseDecision(decision.stage, decision.partition, because(LEFT))


def _is_recorded(decision: Decision) -> bool:
    return decision.record is not None and decision.record.state.counts_as_done
