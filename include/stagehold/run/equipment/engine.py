"""What an attempt computes with, as far as the attempt knows it. It is handed in: tests give an attempt an engine that
needs neither Spark nor Great Expectations, and everything else of the attempt is what it always is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from stagehold.gates.judge import Measured
from stagehold.gates.setting_aside import SplitRows, Unmet
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import Attempt, PartitionRecord
from stagehold.model.stage_state import StateShape
from stagehold.plan.isolation.verdict import Isolation
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from stagehold.code.side_reads import SideRead
    from stagehold.run.functions.call import StageCall
    from stagehold.run.functions.inputs import Reading
    from stagehold.run.planning.task import RegionTask


class Frames(Protocol):
    """Makes the frames of one plan's stages. `run.functions.frames.FrameBuilder` says what each method promises."""

    @property
    def isolations(self) -> Mapping[str, Isolation]: ...
    def check(self, stage: Stage, partition: int) -> StructType: ...
    def call_again(self, stage: Stage, partition: int) -> Mapping[str, Sequence[StageCall]]: ...
    def output(self, stage: Stage, partitions: tuple[int, ...]) -> Any: ...
    def kept(self, stage: Stage, shape: StateShape, partitions: tuple[int, ...]) -> Any: ...
    def group_columns(self, stage: Stage) -> tuple[str, ...]: ...
    def is_arranged(self, stage: Stage) -> bool: ...
    def computing(self, stage: Stage) -> AbstractContextManager[None]: ...
    @property
    def habits(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def reads(self) -> Mapping[str, Sequence[SideRead]]: ...


class Fingerprints(Protocol):
    """Reads what is recorded."""

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]: ...


class Session(Fingerprints, Protocol):
    """Of one attempt, from when it has something to compute until it ends. A frame is whatever `Frames` makes."""

    def frames(self, reading: Reading) -> Frames: ...
    def committer(self, stage: Stage, location: TableLocation) -> Committer: ...
    def write(self, frame: Any, files: WaveFiles) -> StagedWave: ...
    def measure(
        self, staged: StagedWave, schema: StructType, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        """What was staged, and what its gate says of it."""

    def split(self, staged: StagedWave, schema: StructType, unmet: Sequence[Unmet], suite: Suite) -> SplitRows:
        """Rows of staged partitions that do not meet something, in frames to write."""

    def judge(self, records: Sequence[PartitionRecord], suite: Suite) -> Measured:
        """What is recorded, and what a gate says of it."""

    def judge_together(self, records: Sequence[PartitionRecord], suite: Suite) -> Sequence[GateVerdict]:
        """What a gate says of all that is recorded, as of one partition."""


class Engine(Protocol):
    """Opens sessions, and ends those of attempts that cannot do it themselves."""

    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> AbstractContextManager[Session]:
        """A session of ``attempt``'s own; those of attempts that ``died`` are released first."""

    def release(self, attempt: Attempt) -> None:
        """Stop what the attempt computes, wherever it runs."""
