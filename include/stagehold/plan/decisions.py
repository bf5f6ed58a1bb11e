"""What the planner is told and what it answers: plain data that executor, preview and tests share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stagehold.model.compute_key import ComputeKey
from stagehold.model.records import Acceptance, PartitionRecord
from stagehold.model.spec import Pipeline
from stagehold.plan.shares import Share

Place = tuple[str, int]  # stage and partition


class Action(StrEnum):
    """The five words for what happens to a partition."""

    REUSE = "reuse"
    RUN = "run"
    HEAL = "heal"
    BLOCKED = "blocked"
    RELEASE = "release"

    @property
    def computes(self) -> bool:
        return self in (Action.RUN, Action.HEAL)


@dataclass(frozen=True)
class StageFacts:
    """What can be known of a stage without running it.

    ``code_problem`` says why the code cannot be hashed, when it cannot. ``splits`` has one hash per partition of a
    source stage.
    """

    code: str
    code_problem: str | None = None
    gate: str = ""
    splits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Situation:
    """Everything the planner is told. Keys of the mappings are stage names.

    ``gone`` are recorded partitions that cannot be read now: asked of the lake at planning time, never remembered.
    Records of ``accepted`` stages count as they are; of ``forced`` stages only those made by ``run_id`` count. Into how many
    partitions the ``undecided`` stages are cut is not known yet; one decision stands for all of them. ``acceptances`` are
    people's words that data made by other code is as good as by the present one. ``wanted`` are partitions that somebody
    outside the accepted stages' view needs, so that they are healed if they are gone.
    """

    pipeline: Pipeline
    facts: Mapping[str, StageFacts]
    recorded: Mapping[str, tuple[PartitionRecord, ...]]
    gone: Mapping[str, frozenset[int]]
    environment: str
    params: str
    run_id: str
    accepted: frozenset[str] = frozenset()
    forced: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()
    acceptances: Mapping[str, tuple[Acceptance, ...]] = field(default_factory=dict)
    wanted: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What happens to one partition. ``key`` is None while an input still has to run.

    ``hinges_on`` is a partition to heal that this one was made from, directly or not: if that comes out different, this
    one runs after all.
    """

    stage: str
    partition: int
    action: Action
    reason: str
    key: ComputeKey | None = None
    record: PartitionRecord | None = None
    hinges_on: Place | None = None


@dataclass(frozen=True)
class ResumePlan:
    """Decisions by stage in topological order, partitions ascending."""

    decisions: tuple[Decision, ...]
    by_stage: Mapping[str, tuple[Decision, ...]] = field(repr=False)

    def of(self, stage: str) -> tuple[Decision, ...]:
        return self.by_stage[stage]

    def consumable(self, stage: str) -> bool:
        """Whether all of a stage can be read as it is."""
        return all(decision.action is Action.REUSE and decision.record is not None for decision in self.of(stage))

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        """What can be read of a stage as it is."""
        decisions = (decision for decision in self.of(stage) if decision.action is Action.REUSE)
        return tuple(decision.record for decision in decisions if decision.record is not None)

    def within(self, stages: Collection[str], share: Share | None) -> ResumePlan:
        """The same plan with only those decisions on ``stages`` that a task of this share carries out."""
        if share is None:
            return self
        by_stage = {
            stage: tuple(one for one in decisions if stage not in stages or one.partition in share)
            for stage, decisions in self.by_stage.items()
        }
        return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage)

    def count(self, action: Action) -> int:
        return sum(decision.action is action for decision in self.decisions)

    def stages_that_compute(self) -> tuple[str, ...]:
        return tuple(stage for stage, decisions in self.by_stage.items() if any(decision.action.computes for decision in decisions))
