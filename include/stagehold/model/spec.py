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


class OnForeignChange(StrEnum):
    """What becomes of a published partition whose rows somebody else removed from its table."""

    FAIL = "fail"  # it is blocked until somebody decides
    HEAL = "heal"  # it is computed again and published
    KEEP = "keep"  # it stays as it is, and counts as done


class DeterminismPolicy(StrEnum):
    """What is done about operations that may give other data in the next run, and about data that came out different.

    Unset, the first are told and the second is an error.
    """

    WARN = "warn"  # both are told
    ERROR = "error"  # both are errors
    OFF = "off"  # the first are not looked for, the second is an error


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
    """`blocking`: stored, and kept while something needs it. `blocking_persistent`: a table of yours. `pipelined`: not
    stored but computed along with its readers. `pipelined_bounded`: likewise, and kept by Spark for a second
    reader. Without it: what `execution_mode` chooses, so a `forward` stage is fused with its reader.
    Example: `type: blocking`"""

    table: str | None = None
    """Name of the published table, as `schema.table`; for `blocking_persistent` only.
    Example: `type: blocking_persistent, table: marts.totals`"""

    committer: CommitterKind = CommitterKind.STAGED
    """Who makes the commits: `staged`, delta-rs of files that Spark wrote; `delta_spark`, Spark, which writes the rows
    once more.
    Example: `committer: delta_spark`"""

    on_foreign_change: OnForeignChange = OnForeignChange.FAIL
    """What becomes of partitions of a published table whose rows somebody else removed or changed: `fail` stops there and
    names the commit, `heal` computes them again, `keep` leaves them as they are. For `blocking_persistent` only.
    Example: `type: blocking_persistent, table: marts.totals, on_foreign_change: heal`"""

    file_bytes: ByteSize = 128 * MEGABYTE
    """About how large a partition's file grows before another is begun. Example: `file_bytes: 64mb`"""


class CheckpointSettings(SpecPart):
    """``interval`` is also the wanted length of a wave: work lost by a kill is at most about that.

    With `auto` it follows from what a commit costs and how often attempts failed.
    """

    interval: DurationOrAuto = timedelta(seconds=30)
    """How long a wave should last, which is about how much work a kill may cost, and how often a checkpoint is taken.
    `auto` weighs what a commit costs against how often attempts failed.
    Example: `interval: auto`"""

    retained: Count = 1
    """How many completed checkpoints are kept. Example: `retained: 3`"""

    min_pause: Duration = timedelta(0)
    """Least time between the end of one checkpoint and the begin of the next. Example: `min_pause: 10s`"""

    timeout: PositiveDuration = timedelta(minutes=10)
    """A checkpoint that takes longer is given up. Example: `timeout: 5min`"""

    tolerable_failures: int = Field(default=0, ge=0, strict=True)
    """How many checkpoints in a row may fail before the run does. Example: `tolerable_failures: 2`"""


class RestartSettings(SpecPart):
    """Parameters not used by the chosen strategy are refused by the loader."""

    strategy: RestartStrategy = RestartStrategy.EXPONENTIAL_DELAY
    """`none`; `fixed-delay` with `attempts` and `delay`; `failure-rate` with `failures`, `interval` and `delay`;
    `exponential-delay` with `initial`, `max`, `multiplier`, `jitter`, `reset_after` and `attempts`.
    Example: `strategy: none`"""

    attempts: int | None = Field(default=None, ge=0, strict=True)
    """How many restarts there may be. Without it: 1 with `fixed-delay`, no limit of its own with `exponential-delay`.
    Example: `strategy: fixed-delay, attempts: 3`"""

    delay: Duration | None = None
    """How long to wait before each restart. Without it: 1s.
    Example: `strategy: fixed-delay, attempts: 3, delay: 10s`"""

    failures: Count | None = None
    """More failures than this within `interval` end the run. Without it: 1.
    Example: `strategy: failure-rate, failures: 3, interval: 1h`"""

    interval: PositiveDuration | None = None
    """The time in which failures are counted. Without it: 1min.
    Example: `strategy: failure-rate, failures: 3, interval: 1h`"""

    initial: PositiveDuration | None = None
    """The first delay. Without it: 1s. Example: `initial: 5s`"""

    max: PositiveDuration | None = None
    """The longest delay. Without it: 1min. Example: `max: 10min`"""

    multiplier: float | None = Field(default=None, gt=1, strict=True)
    """By how much each delay is longer than the last. Without it: 1.5. Example: `multiplier: 2.0`"""

    jitter: float | None = Field(default=None, ge=0, le=1, strict=True)
    """The share by which a delay is shortened or lengthened at random. Without it: 0.1. Example: `jitter: 0.2`"""

    reset_after: PositiveDuration | None = None
    """A run that was well for so long begins again with the first delay and counts from nothing. Without it: 1h.
    Example: `reset_after: 30min`"""


class FailureDeclaration(SpecPart):
    """The author's rule for errors of his own: a class named as ``module:Class``, a pattern in the text, or both.

    The pattern is searched without regard to case.
    """

    error: str | None = None
    """Class of the error, as `module:Class`; its subclasses count, and so does what a Python worker of Spark raised.
    Example: `error: "builtins:KeyError", class: recoverable`"""

    text: str | None = None
    """A pattern that is searched for in the text of the error, in either case. With `error`, both have to fit.
    Example: `text: "quota exceeded", class: environment`"""

    kind: FailureClass
    """What such a failure means: `non_recoverable` ends the run at once, `recoverable` and `environment` restart it.
    Needed.
    Example: `error: "builtins:KeyError", class: non_recoverable`"""


class Speculation(SpecPart):
    """When a task that is done with its own share computes a slow one's as well; the words are Flink's, times are in seconds.

    Slow is who takes ``multiplier`` times the median of the quickest ``finished_share`` of the tasks, which must have
    finished, and at least ``least_seconds``. ``attempts_at_a_time`` counts the slow one, too.
    """

    finished_share: float = Field(default=0.75, ge=0, le=1, strict=True)
    """How large a share of the tasks must have finished before any counts as slow. Example: `finished_share: 0.5`"""

    multiplier: float = Field(default=1.5, ge=1, strict=True)
    """Slow is what takes so many times the median of those. Example: `multiplier: 2.0`"""

    least_seconds: float = Field(default=60, ge=0, strict=True)
    """Nothing counts as slow before so many seconds. Example: `least_seconds: 120`"""

    attempts_at_a_time: int = Field(default=2, ge=2, strict=True)
    """How many attempts may work on one share at a time, with the slow one. Example: `attempts_at_a_time: 3`"""


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


STALL_TIMEOUT = timedelta(minutes=10)


class Pipeline(SpecPart):
    """A validated pipeline; stages are in topological order and every reference resolves."""

    name: str
    file: str
    schedule: str | None = None
    run_timeout: PositiveDuration | None = None
    stall_timeout: PositiveDuration = STALL_TIMEOUT
    schedule_mode: ScheduleMode = ScheduleMode.LAZY_FROM_SOURCES
    execution_mode: ExecutionMode = ExecutionMode.BATCH
    checkpoint: CheckpointSettings = CheckpointSettings()
    restart: RestartSettings = RestartSettings()
    failures: tuple[FailureDeclaration, ...] = ()
    failover: Failover = Failover.REGION
    early_cutoff: bool = False
    determinism: DeterminismPolicy | None = None
    verify: VerifyPolicy = VerifyPolicy.SAMPLE
    speculation: Speculation | None = None
    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return self.name

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def determinism_of(self, stage: Stage) -> DeterminismPolicy | None:
        return stage.determinism or self.determinism

    def readers(self, name: str) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if any(edge.stage == name for edge in stage.inputs))
