"""What the planner answers: plain data that executor, preview and tests share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from stagehold.model.foreign_change import ForeignChange
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.partition_set import Share
from stagehold.model.records import PartitionRecord
from stagehold.plan.grounds.reasons import Place, Reason
from stagehold.plan.state.earlier_state import Gap

Kind = TypeVar("Kind", bound="Decision")


class Action(StrEnum):
    """The six words for what happens to a partition."""

    REUSE = "reuse"
    RUN = "run"
    HEAL = "heal"
    JUDGE = "judge"  # its data is there, but not the verdict of its gate
    BLOCKED = "blocked"
    RELEASE = "release"

    @property
    def computes(self) -> bool:
        return self in (Action.RUN, Action.HEAL)


@dataclass(frozen=True)
class EndedWaiver:
    """A waiver has ended that let refused data be read: the data of ``place``, which is the partition of a decision, or
    which it was made from, directly or not.

    ``retracts`` says that its rows are therefore taken out of its table. ``presumed`` is the key that the partition
    would have if all that it reads stayed as it is recorded; it is there only if that is needed.
    """

    place: Place
    retracts: bool = False
    presumed: ComputeKey | None = None


@dataclass(frozen=True)
class Decision:
    """What happens to one partition; there is a class for each action. ``key`` is None while an input still has to run.

    ``restored`` says that its ``record`` comes from the checkpoint that the run begins with. ``hinges_on`` is a
    partition to heal that this one was made from, directly or not: if that comes out different, this one runs after
    all. ``rests_on`` is a partition that this one is made from, directly or not, and that only a waiver let through;
    ``ended`` is given if such a waiver has ended.
    """

    action: ClassVar[Action]

    stage: str
    partition: int
    reason: Reason
    key: ComputeKey | None = None
    record: PartitionRecord | None = None
    _: KW_ONLY
    restored: bool = False
    hinges_on: Place | None = None
    rests_on: Place | None = None
    ended: EndedWaiver | None = None

    @property
    def place(self) -> Place:
        return self.stage, self.partition

    @property
    def retracts(self) -> bool:
        """Whether its rows are taken out of its table."""
        return self.ended is not None and self.ended.retracts

    @property
    def outstays(self) -> bool:
        """Whether its rows stay in its table, marked, though it rests on data that may no longer be read."""
        return self.ended is not None and not self.retracts and self.record is not None and self.record.in_table

    @property
    def reused(self) -> PartitionRecord | None:
        """The record that is read as it is. A partition that no reader needs is not computed either, and has no
        record.
        """
        return self.record if self.action is Action.REUSE else None

    def turned(self, kind: type[Kind], reason: Reason) -> Kind:
        """Another decision on the same partition, with all its other facts."""
        known: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(Decision)}
        return kind(**{**known, "reason": reason})


@dataclass(frozen=True)
class ReuseDecision(Decision):
    """The partition is read as it is recorded; or nobody needs it, and there is no record."""

    action = Action.REUSE


@dataclass(frozen=True, kw_only=True)
class RunDecision(Decision):
    """The partition is computed. ``anew`` says that its ``record`` does not count because its run starts anew,
    ``dealt`` that its rows come from other partitions of the checkpoint that the run begins with, dealt anew by their
    keys.
    """

    action = Action.RUN

    anew: bool = False
    dealt: bool = False


@dataclass(frozen=True)
class HealDecision(Decision):
    """The partition is computed again, because it is needed and its data is gone."""

    action = Action.HEAL


@dataclass(frozen=True, kw_only=True)
class JudgeDecision(Decision):
    """Its gate judges the data that is there; ``together`` with all others of its stage, or by itself."""

    action = Action.JUDGE

    together: bool = False


@dataclass(frozen=True, kw_only=True)
class BlockedDecision(Decision):
    """The partition may be neither read nor computed. ``foreign`` or ``gap`` says why it, or what it reads, is blocked,
    if no gate is to blame.
    """

    action = Action.BLOCKED

    foreign: ForeignChange | None = None
    gap: Gap | None = None


@dataclass(frozen=True)
class ReleaseDecision(Decision):
    """Nothing that runs reads the partition, so its data may be deleted."""

    action = Action.RELEASE


@dataclass(frozen=True)
class PlanCounts:
    """How many partitions a plan reuses, runs, leaves blocked and judges again; those ``along`` are computed with their
    readers and not stored. Independently of that, so many ``retract``ed ones are taken out of their tables, because a
    waiver has ended.
    """

    reuse: int
    run: int
    along: int
    blocked: int
    judge: int = 0
    retract: int = 0

    def __str__(self) -> str:
        judged = f", {self.judge} judged again" if self.judge else ""
        taken = f", {self.retract} taken out of their tables" if self.retract else ""
        counts = f"{self.reuse} partitions reused, {self.run} run{also_computed(self.along)}, {self.blocked} blocked"
        return f"{counts}{judged}{taken}"


def also_computed(along: int) -> str:
    """Words for partitions that are in no table, behind the number of those that are."""
    return f" ({along} more computed along, not stored)" if along else ""


@dataclass(frozen=True)
class ResumePlan:
    """Decisions by stage in topological order, partitions ascending. Partitions of ``unstored`` stages are computed
    along with their readers.
    """

    decisions: tuple[Decision, ...]
    by_stage: Mapping[str, tuple[Decision, ...]] = field(repr=False)
    unstored: frozenset[str] = frozenset()

    def of(self, stage: str) -> tuple[Decision, ...]:
        return self.by_stage[stage]

    def consumable(self, stage: str) -> bool:
        """Whether all of a stage can be read as it is."""
        return all(decision.reused for decision in self.of(stage))

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        """The records of a stage that are read as they are."""
        return tuple(decision.reused for decision in self.of(stage) if decision.reused)

    def within(self, stages: Collection[str], share: Share | None) -> ResumePlan:
        """The plan with only those decisions on ``stages`` that a task of this share carries out."""
        if share is None:
            return self
        by_stage = {
            stage: tuple(decision for decision in decisions if stage not in stages or decision.partition in share)
            for stage, decisions in self.by_stage.items()
        }
        return replace(
            self,
            decisions=tuple(decision for decisions in by_stage.values() for decision in decisions),
            by_stage=by_stage,
        )

    def count(self, action: Action) -> int:
        return sum(decision.action is action for decision in self.decisions)

    @property
    def counts(self) -> PlanCounts:
        stored = [decision for decision in self.decisions if decision.stage not in self.unstored]
        computing = sum(decision.action.computes for decision in self.decisions)
        reuses, runs = (
            sum(decision.reused is not None for decision in stored),
            sum(decision.action.computes for decision in stored),
        )
        retracted = sum(decision.retracts for decision in self.decisions)
        return PlanCounts(
            reuses, runs, computing - runs, self.count(Action.BLOCKED), self.count(Action.JUDGE), retracted
        )

    @property
    def needs_session(self) -> bool:
        """Whether anything is computed or judged again."""
        return any(decision.action.computes or decision.action is Action.JUDGE for decision in self.decisions)

    def stages_that_compute(self) -> tuple[str, ...]:
        return tuple(
            stage
            for stage, decisions in self.by_stage.items()
            if any(decision.action.computes for decision in decisions)
        )
