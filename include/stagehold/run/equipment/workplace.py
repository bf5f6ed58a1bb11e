"""What everybody has at hand who works on a region."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stagehold.gates.judge import Measured, Unmet
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.store.location import TableLocation
from stagehold.ledger.ledger import Ledger
from stagehold.model.pulse import QueryStage
from stagehold.model.records import Attempt, Event, PartitionRecord
from stagehold.model.stage_state import StateShape
from stagehold.plan.isolation.verdict import Isolation
from stagehold.run.faults import Faults
from stagehold.settings import Settings
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from stagehold.code.side_reads import SideRead
    from stagehold.run.functions.stage_call import StageCall
    from stagehold.run.functions.stage_inputs import Reading
    from stagehold.run.planning.task import RegionTask

T = TypeVar("T")
Progress = Callable[[str], None]


class Beside(Protocol):
    """Does work beside the caller's own."""

    def __call__(self, work: Callable[[], T], /) -> Future[T]: ...


def in_a_thread(work: Callable[[], T], /) -> Future[T]:
    """The work in a thread that keeps no process from ending."""
    done = Future[T]()

    def carry_out() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            done.set_exception(error)

    threading.Thread(target=copy_context().run, args=(carry_out,), name="finishing waves", daemon=True).start()
    return done


@dataclass(frozen=True)
class Workplace:
    """Handed in, so that tests can have others: a ledger of theirs, an engine without Spark, points that pause.

    ``committer`` fences tables for which no session is open. ``beside`` finishes a wave while the next one is computed.
    """

    ledger: Ledger
    settings: Settings
    progress: Progress
    engine: Engine
    faults: Faults
    committer: Committer = field(default_factory=StagedCommitter)
    sleep: Callable[[float], None] = time.sleep
    beside: Beside = in_a_thread

    def warn(self, run_id: str, kind: str, subject: str, text: str) -> None:
        """Say it, and keep it among the run's events."""
        self.progress(f"warning: {text}")
        self.ledger.events.append(Event(run_id, kind, subject, text, datetime.now(UTC)))


class Frames(Protocol):
    """Makes the frames of one plan's stages. `FrameBuilder` says what each method promises."""

    @property
    def isolations(self) -> Mapping[str, Isolation]: ...
    def check(self, stage: Stage, partition: int) -> StructType: ...
    def call_again(self, stage: Stage, partition: int) -> Mapping[str, Sequence[StageCall]]: ...
    def output(self, stage: Stage, partitions: tuple[int, ...]) -> Any: ...
    def kept(self, stage: Stage, shape: StateShape, partitions: tuple[int, ...]) -> Any: ...
    def counted(self, stage: Stage, partitions: tuple[int, ...]) -> Mapping[int, tuple[tuple[str, int], ...]]: ...
    @property
    def counting(self) -> Sequence[Stage]: ...
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
    def read_log(self, table: str) -> None:
        """:raises Exception: not even the log of the table can be read"""


class Session(Fingerprints, Protocol):
    """The session of one attempt, from when it has something to compute until it ends. A frame is whatever `Frames`
    makes.
    """

    def report_stages(self, tell: Callable[[Sequence[QueryStage]], None]) -> None:
        """From now on ``tell`` is told how the stages of a query stand, as often as the server says it."""

    def frames(self, reading: Reading) -> Frames: ...
    def committer(self, stage: Stage, location: TableLocation) -> Committer: ...
    def write(self, frame: Any, files: WaveFiles, unjudged: StructType | None = None) -> StagedWave:
        """Stage a frame.

        :param unjudged: the schema of what no gate judges, so that it can be measured while it is written.
        """

    def measure(
        self, staged: StagedWave, schema: StructType, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        """What was staged, and what its gate says of it."""

    def split(
        self, staged: StagedWave, schema: StructType, unmet: Sequence[Unmet], suite: Suite
    ) -> tuple[DataFrame, DataFrame]:
        """Rows of staged partitions that do not meet something, in frames to write."""

    def judge(self, records: Sequence[PartitionRecord], suite: Suite) -> Measured:
        """What is recorded, and what a gate says of it."""

    def register(self, uri: str, name: str) -> None:
        """Have the catalog of the server know a table by this name."""

    def judge_together(self, records: Sequence[PartitionRecord], suite: Suite) -> Sequence[GateVerdict]:
        """What a gate says of all that is recorded, as of one partition."""


class Engine(Protocol):
    """Opens sessions, and ends those of attempts that cannot do it themselves."""

    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> AbstractContextManager[Session]:
        """A session of ``attempt``'s own; those of attempts that ``died`` are released first."""

    def release(self, attempt: Attempt) -> None:
        """Stop what the attempt computes, wherever it runs."""
