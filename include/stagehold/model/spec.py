"""A pipeline as its author declares it. `spec_file` reads it from YAML and names file and line of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from stagehold.model.byte_size import MEGABYTE, ByteSize
from stagehold.model.duration import Duration, DurationOrAuto, more_than_nothing
from stagehold.model.key_groups import HIGHEST
from stagehold.model.records import FailureClass
from stagehold.model.spec_part import Count, SpecPart
from stagehold.model.spec_source import Source

PositiveDuration = Annotated[Duration, AfterValidator(more_than_nothing)]


class Exchange(StrEnum):
    """How a stage reads one input: its own partition, its key groups, or everything."""

    FORWARD = "forward"
    KEYED = "keyed"
    BROADCAST = "broadcast"
    GATHER = "gather"


class OutputType(StrEnum):
    """How long an output lives, and whether it is stored at all."""

    BLOCKING = "blocking"
    BLOCKING_PERSISTENT = "blocking_persistent"
    PIPELINED = "pipelined"
    PIPELINED_BOUNDED = "pipelined_bounded"

    @property
    def stored(self) -> bool:
        return self in (OutputType.BLOCKING, OutputType.BLOCKING_PERSISTENT)


class CommitterKind(StrEnum):
    """Who makes an output's commits: delta-rs, of files that Spark staged, or delta-spark, which writes the rows once more."""

    STAGED = "staged"
    DELTA_SPARK = "delta_spark"


class ScheduleMode(StrEnum):
    EAGER = "eager"
    LAZY_FROM_SOURCES = "lazy_from_sources"
    LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST = "lazy_from_sources_with_batch_slot_request"


class ExecutionMode(StrEnum):
    """Chooses the type of every output that does not name one."""

    PIPELINED = "pipelined"
    PIPELINED_FORCED = "pipelined_forced"
    PIPELINED_WITH_BATCH_FALLBACK = "pipelined_with_batch_fallback"
    BATCH = "batch"
    BATCH_FORCED = "batch_forced"


class VerifyPolicy(StrEnum):
    """Which reused partitions are read and compared with their fingerprints before anything is made from them."""

    NEVER = "never"
    SAMPLE = "sample"
    ALWAYS = "always"


class Failover(StrEnum):
    REGION = "region"
    FULL = "full"


class OnCodeChange(StrEnum):
    """What becomes of recorded partitions that other code made than the stage has now."""

    RECOMPUTE = "recompute"
    KEEP = "keep"


class DeterminismPolicy(StrEnum):
    """What is done about operations that may give other data in the next run."""

    WARN = "warn"
    ERROR = "error"
    OFF = "off"


class RestartStrategy(StrEnum):
    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


class Input(SpecPart):
    """One edge into a stage; ``key`` names the columns of the producer that a keyed exchange groups by."""

    stage: str
    exchange: Exchange = Exchange.FORWARD
    key: tuple[str, ...] = ()


class Output(SpecPart):
    """``file_bytes`` is about how large a partition's files may grow before another is begun."""

    type: OutputType = OutputType.BLOCKING
    table: str | None = None
    committer: CommitterKind = CommitterKind.STAGED
    file_bytes: ByteSize = 128 * MEGABYTE


class CheckpointSettings(SpecPart):
    """``interval`` is also the wanted length of a wave: work lost by a kill is at most about that.

    With `auto` it follows from what a commit costs and how often attempts failed.
    """

    interval: DurationOrAuto = timedelta(seconds=30)
    retained: Count = 1
    min_pause: Duration = timedelta(0)
    timeout: PositiveDuration = timedelta(minutes=10)
    tolerable_failures: int = Field(default=0, ge=0, strict=True)


class RestartSettings(SpecPart):
    """Parameters not used by the chosen strategy are refused by the loader."""

    strategy: RestartStrategy = RestartStrategy.EXPONENTIAL_DELAY
    attempts: int | None = Field(default=None, ge=0, strict=True)
    delay: Duration | None = None
    failures: Count | None = None
    interval: PositiveDuration | None = None
    initial: PositiveDuration | None = None
    max: PositiveDuration | None = None
    multiplier: float | None = Field(default=None, ge=1, strict=True)
    jitter: float | None = Field(default=None, ge=0, le=1, strict=True)
    reset_after: PositiveDuration | None = None


class FailureDeclaration(SpecPart):
    """The author's rule for errors of his own: a class named as ``module:Class``, a pattern in the text, or both.

    The pattern is searched without regard to case.
    """

    error: str | None = None
    text: str | None = None
    kind: FailureClass


class Speculation(SpecPart):
    """When a task that is done with its own share computes a slow one's as well; the words are Flink's, times are in seconds.

    Slow is who takes ``multiplier`` times the median of the quickest ``finished_share`` of the tasks, which must have
    finished, and at least ``least_seconds``. ``attempts_at_a_time`` counts the slow one, too.
    """

    finished_share: float = Field(default=0.75, ge=0, le=1, strict=True)
    multiplier: float = Field(default=1.5, ge=1, strict=True)
    least_seconds: float = Field(default=60, ge=0, strict=True)
    attempts_at_a_time: int = Field(default=2, ge=2, strict=True)


class Stage(SpecPart):
    """One node of the pipeline.

    ``key`` are the output columns that tell which partition a row is in; it defaults to the key of the first keyed
    input. ``partitions`` is the resolved number of output partitions, whatever it came from; with ``auto_partitions`` it is
    a placeholder until the number is decided for an interval, as it is for all that inherit it by forward inputs.
    ``max_parallel_tasks`` is the most tasks that its region's partitions are split over.
    Stages of one ``co_location`` are computed by the same task: partition i of all of them in one process and session.
    """

    name: str
    job: str
    uid: str | None = None
    source: Source | None = None
    inputs: tuple[Input, ...] = ()
    partitions: Count
    auto_partitions: bool = False
    max_parallelism: int = Field(ge=1, le=HIGHEST)
    key: tuple[str, ...] = ()
    gate: str | None = None
    output: Output = Output()
    per_wave: bool = False
    on_code_change: OnCodeChange = OnCodeChange.RECOMPUTE
    determinism: DeterminismPolicy | None = None
    max_parallel_tasks: Count = 1
    co_location: str | None = None
    params: Mapping[str, JsonValue] = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """Stable id under which the stage's records are kept."""
        return self.uid or self.name

    def input(self, stage: str) -> Input:
        return next(edge for edge in self.inputs if edge.stage == stage)


class Pipeline(SpecPart):
    """A validated pipeline; stages are in topological order and every reference resolves."""

    name: str
    file: str
    schedule: str | None = None
    run_timeout: PositiveDuration | None = None
    schedule_mode: ScheduleMode = ScheduleMode.LAZY_FROM_SOURCES
    execution_mode: ExecutionMode = ExecutionMode.BATCH
    checkpoint: CheckpointSettings = CheckpointSettings()
    restart: RestartSettings = RestartSettings()
    failures: tuple[FailureDeclaration, ...] = ()
    failover: Failover = Failover.REGION
    early_cutoff: bool = False
    determinism: DeterminismPolicy = DeterminismPolicy.WARN
    verify: VerifyPolicy = VerifyPolicy.SAMPLE
    speculation: Speculation | None = None
    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return self.name

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def determinism_of(self, stage: Stage) -> DeterminismPolicy:
        return stage.determinism or self.determinism

    def readers(self, name: str) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if any(edge.stage == name for edge in stage.inputs))
