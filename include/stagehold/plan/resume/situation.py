"""What the planner is told: for every stage what it follows from, what is recorded, what was asked for, and what people
and gates said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from stagehold.model.choices import Acceptance, CodeChoice, Waiver
from stagehold.model.foreign_change import ForeignChange
from stagehold.model.keys.compute_key import DeclaredRead
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.model.records import PartitionRecord, StageVerdict
from stagehold.plan.state.earlier_state import Earlier
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from stagehold.plan.resume.confining import Confinement


@dataclass(frozen=True)
class StageFacts:
    """Facts about a stage that are known without running it.

    ``code_problem`` says why the code cannot be hashed, if so. ``gate`` identifies what judges each partition,
    ``whole`` what judges all of them together. ``quarantine`` changes when the gate could set other rows aside.
    ``splits`` has one hash for each partition of a source stage. ``reads`` are what it declares to read beside its
    inputs, as they are now.
    """

    code: str
    code_problem: str | None = None
    gate: str = ""
    whole: str = ""
    quarantine: str = ""
    splits: tuple[str, ...] = ()
    reads: tuple[DeclaredRead, ...] = ()


@dataclass(frozen=True)
class Rescaled:
    """The consumable partitions of a stage in a checkpoint, and into how many it was cut then."""

    records: Mapping[int, PartitionRecord]
    partitions: int
    interval: str


@dataclass(frozen=True)
class StageData:
    """The records of a stage for the interval, and whether its data can be read.

    ``gone`` are recorded partitions that cannot be read now: the lake is asked when a plan is made, and the answer is
    not kept. ``removed`` are those that somebody else took out of a published table. ``discarded`` are those that this
    run computed before a failure of its own, after which it starts anew. ``restored`` have a record of the checkpoint
    that the run begins with, and have not been put in place yet; ``rescaled`` are the partitions that this checkpoint
    has of another cut.
    """

    records: tuple[PartitionRecord, ...] = ()
    gone: PartitionSet = NO_PARTITIONS
    removed: Mapping[int, ForeignChange] = field(default_factory=dict)
    discarded: PartitionSet = NO_PARTITIONS
    restored: PartitionSet = NO_PARTITIONS
    rescaled: Rescaled | None = None


@dataclass(frozen=True)
class StageOrder:
    """What this plan is asked to do with a stage.

    Records of an ``accepted`` stage count as they are. Of a ``forced`` stage only ``renewed`` partitions count: those
    that were computed for the request which forces it. ``wanted`` are partitions that are needed outside of the
    accepted stages, so that they are healed if they are gone. ``code_choice`` says what becomes of partitions that
    other code made; without it the stage and acceptances decide.
    """

    accepted: bool = False
    forced: bool = False
    renewed: PartitionSet = NO_PARTITIONS
    wanted: PartitionSet = NO_PARTITIONS
    code_choice: CodeChoice | None = None

    def forces(self, partition: int) -> bool:
        """Whether the partition is to be computed although it may be there."""
        return self.forced and partition not in self.renewed


@dataclass(frozen=True)
class StageWords:
    """What people and gates said of a stage's data.

    ``acceptances`` say that data made by other code counts like that of the present code. ``waivers`` are in force,
    ``ended_waivers`` were in force before, ``verdicts`` are the gate's on all partitions together.
    """

    acceptances: tuple[Acceptance, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    ended_waivers: tuple[Waiver, ...] = ()
    verdicts: tuple[StageVerdict, ...] = ()


@dataclass(frozen=True)
class StageSituation:
    """What is known of a stage. ``earlier`` is the state that it begins with, if it keeps state. For an ``undecided``
    stage the number of partitions is not known yet; one decision stands for all of them.
    """

    facts: StageFacts
    data: StageData = StageData()
    order: StageOrder = StageOrder()
    words: StageWords = StageWords()
    earlier: Earlier | None = None
    undecided: bool = False


@dataclass(frozen=True)
class Situation:
    """Everything the planner is told; ``stages`` has each stage of the pipeline by its name.

    ``confined`` is where a run works that was told so; None for everywhere. ``put_back`` are the stages of a run that
    puts them back as they are recorded, and does nothing else; None for every other run. ``history`` are all records of
    the interval, oldest first, if somebody ever waived something of it. ``now`` is when the run began, by which
    data may be too old.
    """

    pipeline: Pipeline
    stages: Mapping[str, StageSituation]
    environment: str
    params: str
    confined: Confinement | None = None
    put_back: frozenset[str] | None = None
    history: tuple[PartitionRecord, ...] = ()
    now: datetime | None = None

    def of(self, stage: str) -> StageSituation:
        return self.stages[stage]

    def changed(self, change: Callable[[str, StageSituation], StageSituation]) -> Situation:
        """The situation with each stage changed by ``change``, which gets its name and what is known of it."""
        return replace(self, stages={name: change(name, known) for name, known in self.stages.items()})
