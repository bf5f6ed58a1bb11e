"""Leaves alone what a run was not told to do, unless something that it does needs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Action, Decision, ReuseDecision

LEFT = "left as it is: not asked for, and nothing that runs needs it"


@dataclass(frozen=True)
class Confinement:
    """The ``stages`` in which a run works. With ``only_recorded`` it leaves alone there, too, what is not on record."""

    stages: frozenset[str]
    only_recorded: bool = False

    def leaves_nothing(self, stages: Collection[str]) -> bool:
        """Whether a run of these stages does the same as one that is not confined."""
        return not self.only_recorded and self.stages.issuperset(stages)

    def leaves(self, decision: Decision) -> bool:
        """Whether nothing is to be done about the partition for itself."""
        if decision.action is Action.REUSE:
            return False
        return decision.stage not in self.stages or (self.only_recorded and not _is_recorded(decision))

    def wants(self, stage: str) -> bool:
        """Whether what is gone of the stage is to be there again for itself."""
        return stage in self.stages and not self.only_recorded


def leave_alone(confinement: Confinement, drafts: dict[str, list[Decision]]) -> Mapping[str, list[Decision]]:
    """Take out of the drafts what is left alone. Gives those of the stages that this concerns as they were."""
    before: dict[str, list[Decision]] = {}
    for stage, decisions in drafts.items():
        if any(confinement.leaves(decision) for decision in decisions):
            before[stage] = decisions
            drafts[stage] = [_left(decision) if confinement.leaves(decision) else decision for decision in decisions]
    return before


def _left(decision: Decision) -> Decision:
    """The decision without its record: whoever reads the partition has to have it computed, judged or let through
    first.
    """
    return ReuseDecision(decision.stage, decision.partition, because(LEFT))


def _is_recorded(decision: Decision) -> bool:
    return decision.record is not None and decision.record.state.counts_as_done
