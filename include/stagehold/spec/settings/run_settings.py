"""How the runs of a pipeline go: when they start and end, in which waves, what is checked meanwhile, and with which
parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from stagehold.errors import InvalidParameter
from stagehold.model.units import Duration, DurationOrAuto, PositiveDuration, Size
from stagehold.spec.settings.airflow_settings import DagSettings
from stagehold.spec.settings.fields import Count, KeyParts, Names, Options, Params, SpecPart, Switch
from stagehold.spec.settings.launch_settings import Launcher, Resources
from stagehold.spec.settings.reads import Undeclared
from stagehold.spec.settings.restart import RestartSettings


class ScheduleMode(StrEnum):
    EAGER = "eager"
    LAZY_FROM_SOURCES = "lazy_from_sources"
    LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST = "lazy_from_sources_with_batch_slot_request"


class ExecutionMode(StrEnum):
    """Chooses the type of every output that does not name one."""

    PIPELINED = "pipelined"
    PIPELINED_WITH_BATCH_FALLBACK = "pipelined_with_batch_fallback"
    PIPELINED_FORCED = "pipelined_forced"
    BATCH = "batch"
    BATCH_FORCED = "batch_forced"
    AUTO = "auto"

    @property
    def may_store(self) -> bool:
        """Whether what it lets flow may be stored all the same, in one interval."""
        return self in (ExecutionMode.PIPELINED_WITH_BATCH_FALLBACK, ExecutionMode.AUTO)


class VerifyPolicy(StrEnum):
    """Which reused partitions are read and compared with their fingerprints before anything is made from them."""

    NEVER = "never"
    SAMPLE = "sample"
    ALWAYS = "always"


class MatchPolicy(StrEnum):
    """By what a stage finds what a checkpoint has of it."""

    NAMES = "names"
    STRUCTURE = "structure"  # and by its place in the graph where no name fits


class RestorePolicy(StrEnum):
    """What becomes of a run that is to begin with the latest checkpoint, where that does not verify."""

    FALL_BACK = "fall_back"
    STRICT = "strict"


class ReleasePolicy(StrEnum):
    """When the data of stored outputs goes that only stages read."""

    AT_ONCE = "at_once"
    RUN_END = "run_end"
    KEEP = "keep"


class Failover(StrEnum):
    REGION = "region"
    FULL = "full"


class DeterminismPolicy(StrEnum):
    """What is done about operations that may give other data in the next run, and about data that came out different.

    Unset, the first are told and the second is an error.
    """

    WARN = "warn"  # both are told
    ERROR = "error"  # both are errors
    OFF = "off"  # the first are not looked for, the second is an error


# YAML reads an unquoted off as false.
Determinism = Annotated[
    DeterminismPolicy,
    BeforeValidator(
        lambda given: DeterminismPolicy.OFF if given is False else given,
        json_schema_input_type=DeterminismPolicy | Literal[False],
    ),
]


class Effects(StrEnum):
    """Whether a function may write while it is called: tables, files."""

    REFUSED = "refused"
    ALLOWED = "allowed"


class OnCancel(StrEnum):
    """What becomes of a run's checkpoints when it is cancelled."""

    RETAIN = "retain"
    DELETE = "delete"


SHORTEST = timedelta(milliseconds=10)
UNLIMITED = "unlimited"


def _long_enough(duration: timedelta) -> timedelta:
    if duration < SHORTEST:
        raise PydanticCustomError("duration", "10ms or more")
    return duration


def _failures(given: object) -> int | str:
    if given == UNLIMITED or (type(given) is int and given >= 0):
        return given
    raise PydanticCustomError("failures", "a whole number, 0 or more, or unlimited")


LongEnough = Annotated[Duration, AfterValidator(_long_enough)]
FailuresOrUnlimited = Annotated[
    int | Literal["unlimited"],
    PlainValidator(_failures, json_schema_input_type=Annotated[int, Field(ge=0)] | Literal["unlimited"]),
]


class CheckpointSettings(SpecPart):
    """Numbered checkpoints of a run: lists of all that it has reached, kept in the lake. Words and defaults are
    Flink's.
    """

    interval: LongEnough | None = None
    """How often a checkpoint is taken while the run goes on. Without it: only when it ends. Example: `interval: 30s`"""

    min_pause: Duration = timedelta(0)
    """How long it is at least from the end of one to the beginning of the next. Without it: no time.
    Example: `min_pause: 5s`"""

    timeout: LongEnough = timedelta(minutes=10)
    """One that is not acknowledged by all after so long has failed. Attempts acknowledge between two waves, so it
    should be longer than a wave. Example: `timeout: 5min`"""

    max_concurrent: Count = 1
    """How many may be under way at a time. Example: `max_concurrent: 2`"""

    tolerable_failures: FailuresOrUnlimited = 0
    """How many may fail in a row; one more fails the attempts of the run that are under way, and `restart` decides
    whether it goes on. Example: `tolerable_failures: unlimited`"""

    on_cancel: OnCancel = OnCancel.RETAIN
    """What becomes of a run's checkpoints when it is cancelled. Example: `on_cancel: delete`"""

    retained: int = Field(default=1, ge=1, strict=True)
    """How many completed checkpoints of a run are kept. Example: `retained: 3`"""


class RetentionSettings(SpecPart):
    """The intervals whose outputs that only stages read stay, with `release: run_end`. The outputs go once any of these
    limits is reached.
    """

    intervals: int = Field(default=30, ge=0, strict=True)
    """Of how many intervals, those that ran last. Example: `intervals: 3`"""

    age: PositiveDuration | None = None
    """How long after the end of the interval's newest run. Without it: for any time. Example: `age: 60d`"""

    bytes: Size | None = None
    """How much they may be together. Without it: any amount. Example: `bytes: 2TB`"""


class CancellationSettings(SpecPart):
    """What happens when a run of a command is cancelled and does not react. In Airflow, Airflow kills a task 5 seconds
    after it was told to stop.
    """

    interval: PositiveDuration = timedelta(seconds=30)
    """After how long what does not react is interrupted once more. Example: `interval: 10s`"""

    timeout: Duration = timedelta(minutes=3)
    """After how long its process is killed, and the reason recorded; `0s`: never. Example: `timeout: 1min`"""


class Speculation(SpecPart):
    """When a task that is done with its own share computes a slow one's as well; the words and defaults are Flink's,
    times are in seconds.

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


class RunSettings(SpecPart):
    """What a pipeline says of its runs, in its file as in the checked pipeline."""

    run_timeout: PositiveDuration | None = None
    """A run that takes longer is cancelled; what it made is kept. Example: `run_timeout: 4h`"""

    stall_timeout: PositiveDuration = timedelta(minutes=10)
    """A call to Spark that makes no progress for so long is interrupted, and stacks of all processes are kept. A task
    that works on one partition reports none meanwhile. Example: `stall_timeout: 30min`"""

    cancellation: CancellationSettings = CancellationSettings()
    """What happens when a run that is cancelled does not react; see the fields of `cancellation`.
    Example: `cancellation: {interval: 10s, timeout: 1min}`"""

    schedule_mode: ScheduleMode = ScheduleMode.LAZY_FROM_SOURCES
    """When tasks start: those of a region when what it reads is there; `eager`: all at once, and each waits for its
    partitions.
    Example: `schedule_mode: eager`"""

    execution_mode: ExecutionMode = ExecutionMode.BATCH
    """Chooses the type of every output that names none. `batch` computes `forward` stages along with their readers,
    and stores what is read by key or whole, and where branches part that are joined again. `pipelined` computes what is
    read by key or whole along, too: its reader is then one wave. `pipelined_with_batch_fallback` does so until an
    attempt that computed several stages at once fails for want of memory, disk or time, or with Spark; the next ones
    for that interval store each. `pipelined_forced` stores no branches either; `batch_forced` stores everything.
    `auto` begins as `pipelined_with_batch_fallback`, and stores in each run what is worth it: what would take longer
    to compute again, by the times on record and by how often attempts failed, than it takes to store.
    `stagehold plan` says what becomes of each exchange, why, and what a kill costs.
    Example: `execution_mode: batch_forced`"""

    wave: DurationOrAuto = timedelta(seconds=30)
    """How long a wave should last, which is about how much work a kill may cost. `auto` weighs what a commit costs
    against how often attempts failed.
    Example: `wave: auto`"""

    checkpoint: CheckpointSettings = CheckpointSettings()
    """When numbered checkpoints are taken, and how many are kept; a run leaves one when it ends. See the fields of
    `checkpoint`.
    Example: `checkpoint: {interval: 1min, retained: 3}`"""

    release: ReleasePolicy = ReleasePolicy.RUN_END
    """When stored outputs go that only stages read: `at_once` when all that reads them has finished; `run_end` when the
    run has and as many others have run since as `retain` says, for a late resume, restore or backfill; `keep`: never.
    Published tables stay, as does what no stage reads. What is needed again is computed again.
    Example: `release: at_once`"""

    retain: RetentionSettings = RetentionSettings()
    """Of which intervals outputs stay that only stages read; see the fields of `retain`.
    Example: `retain: {intervals: 7, bytes: 500GB}`"""

    restart: RestartSettings = RestartSettings()
    """What happens after a failure; see the fields of `restart`.
    Example: `restart: {strategy: fixed-delay, attempts: 3, delay: 10s}`"""

    failover: Failover = Failover.REGION
    """What runs again after a failure: the region with all that follows from it, or the whole run.
    Example: `failover: full`"""

    restore: RestorePolicy = RestorePolicy.FALL_BACK
    """What becomes of a run that is to begin with the `latest` checkpoint, and that cannot be read, its data is gone or
    differs: `fall_back` takes the next one that verifies and says why, `strict` refuses the run.
    Example: `restore: strict`"""

    match: MatchPolicy = MatchPolicy.NAMES
    """By what a stage finds what is its own in a checkpoint that a run begins with: `names` are its `uid`, its name and
    what it `was`. With `structure`, a stage for which none of them fits, and that has neither `uid` nor `was`, takes
    what its place in the graph gives it, as Flink's generated ids do: what comes before it, and how many stages do.
    Example: `match: structure`"""

    early_cutoff: Switch = False
    """Whether a reader stays as it is when its input was computed again to equal content, though by other code.
    Example: `early_cutoff: true`"""

    determinism: Determinism | None = None
    """What to do about code that may give other data next time: `error` refuses it, `off` does not look, else it is
    said. Data that did come out different is an error, except with `warn`: then it is published and its readers run
    again. Example: `determinism: error`"""

    reads: Undeclared = Undeclared.WARN
    """What becomes of what a function reads beside its inputs and its stage does not declare in `reads`: `warn` tells
    it, once per stage and attempt, `strict` refuses the stage. Nothing sees a change of it.
    Example: `reads: strict`"""

    effects: Effects = Effects.REFUSED
    """Whether functions may write tables or files while they are called. A function is called several times for a
    partition: it is checked, looked at, computed, and computed again after a failure. So what it writes it may write
    more than once.
    Example: `effects: allowed`"""

    spark: Options = Field(default_factory=dict)
    """Settings of Spark for the sessions in which the stages' functions are called. They count in the stages' keys.
    What is fixed when Spark's server starts is not among them.
    Example: `spark: {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": 8}`"""

    launcher: Launcher = Launcher.SERVER
    """Where regions are computed: on the `server` that all pipelines share, or, with `submit`, each in a Spark
    application of its own on STAGEHOLD_SPARK_MASTER. Its driver outlives the task that started it, and the next try
    of the task finds it again; see production.md.
    Example: `launcher: submit`"""

    resources: Resources = Resources()
    """What each application of `launcher: submit` is given; see the fields of `resources`.
    Example: `launcher: submit, resources: {executor_memory: 4g, executor_cores: 2, instances: 4}`"""

    verify: VerifyPolicy = VerifyPolicy.SAMPLE
    """Which reused partitions are compared with their fingerprints before anything is made from them: two of each
    input, all, or none.
    Example: `verify: always`"""

    speculation: Speculation | None = None
    """Whether a task that is done helps with the share of a slow one; see the fields of `speculation`.
    Example: `speculation: {least_seconds: 30}`"""

    airflow: DagSettings = DagSettings()
    """What Airflow is told of the DAG and of its tasks; see the fields of `airflow`.
    Example: `airflow: {owner: sales-team, tags: [sales]}`"""

    params: Params = Field(default_factory=dict)
    """Parameters with their defaults. A run may be given other values; functions find them in `ctx.params`.
    Example: `params: {country: de, limit: 10}`"""

    keep: KeyParts = ()
    """Changes that leave recorded partitions of all stages as they are: `code`, `params`, `environment`, `sources`; see
    `keep` of a stage.
    Example: `keep: environment`"""

    secrets: Names = ()
    """Names of secrets that functions ask for by `ctx.secret("NAME")`, or sources by `password_secret`. They are looked
    for before anything is computed; see declare.md.
    Example: `secrets: [api_token]`"""


PARAMETER_KINDS = {  # a switch before a number: to Python, it is one
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list, as JSON",
    dict: "an object, as JSON",
}


def checked_params(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults with the values put over them that a run is given. Their types are those of the defaults.

    :raises InvalidParameter: for a name that the pipeline does not declare, or a value of another type
    """
    for name, value in given.items():
        allowed = _allowed_instead(name, value, defaults)
        if allowed is not None:
            raise InvalidParameter(name, value if isinstance(value, str) else json.dumps(value), allowed)
    return {**defaults, **given}


def _allowed_instead(name: str, value: Any, defaults: Mapping[str, Any]) -> str | None:
    """What a value may be instead; None if it is all right. A default of null, or of a type that JSON lacks, allows
    everything.
    """
    if name not in defaults:
        return f"a parameter of the pipeline: {', '.join(defaults) or 'it has none'}"
    kind = type(defaults[name])
    if kind not in PARAMETER_KINDS or type(value) is kind or (kind is float and type(value) is int):
        return None
    return f"{PARAMETER_KINDS[kind]}, as the default {defaults[name]!r} is"
