"""A pipeline as its author declares it. The loader reads it from YAML and names file and line of what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from stagehold.code.script_job import is_script
from stagehold.model.keys.key_groups import HIGHEST
from stagehold.model.stage_state import StateShape
from stagehold.model.units import KILOBYTE, MEGABYTE, Size
from stagehold.spec.settings.airflow_settings import NotifierDeclaration, ScheduleForm, TaskSettings
from stagehold.spec.settings.fields import Columns, Count, IntervalText, Names, Options, Params, SpecPart, Switch
from stagehold.spec.settings.launch_settings import Resources
from stagehold.spec.settings.output_settings import (
    ColumnForm,
    CommitterKind,
    Evolution,
    Fallback,
    KeepSettings,
    OnCodeChange,
    OnForeignChange,
    OnWaiverEnd,
    ReleasedBy,
    StateForm,
    TypeReason,
    Worth,
)
from stagehold.spec.settings.reads import Reads, ReadsForm, StageReads
from stagehold.spec.settings.restart import FailureDeclaration
from stagehold.spec.settings.run_settings import Determinism, DeterminismPolicy, Effects, RunSettings
from stagehold.spec.settings.source import Source


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

    @property
    def consumed_while_produced(self) -> bool:
        """The reader must run together with the producer, so both are in one region."""
        return not self.stored

    @property
    def reconsumable(self) -> bool:
        """A restarted reader can read it again."""
        return self.stored

    @property
    def bounded(self) -> bool:
        return self is OutputType.PIPELINED_BOUNDED

    @property
    def persistent(self) -> bool:
        """It belongs to the user when the run has finished, and is never released early."""
        return self is OutputType.BLOCKING_PERSISTENT

    @property
    def released_by(self) -> ReleasedBy:
        return ReleasedBy.SCHEDULER if self.stored else ReleasedBy.PRODUCER


class OutputForm(SpecPart):
    """How an output is kept, as the file says it."""

    type: OutputType = OutputType.BLOCKING
    """`blocking`: stored, and kept while something needs it. `blocking_persistent`: a table of yours. `pipelined`: not
    stored but computed along with its readers. `pipelined_bounded`: likewise, and kept by Spark for a second
    reader. Without it: what `execution_mode` chooses, so a `forward` stage is fused with its reader.
    Example: `type: blocking`"""

    table: str | None = None
    """Name of the published table, as `schema.table`; for `blocking_persistent` only.
    Example: `type: blocking_persistent, table: marts.totals`"""

    catalog: str | None = None
    """Name under which the catalog of Spark's server is to know the published table, as `schema.table` or
    `catalog.schema.table`, so that its readers find it there. For `blocking_persistent` only.
    Example: `type: blocking_persistent, table: marts.totals, catalog: sales.totals`"""

    committer: CommitterKind = CommitterKind.STAGED
    """Who makes the commits: `staged`, delta-rs of files that Spark wrote; `delta_spark`, Spark, which writes the rows
    once more. Example: `committer: delta_spark`"""

    on_foreign_change: OnForeignChange = OnForeignChange.FAIL
    """What becomes of partitions of a published table whose rows somebody else removed or changed: `fail` stops there
    and names the commit, `heal` computes them again, `keep` leaves them as they are. For `blocking_persistent` only.
    Example: `type: blocking_persistent, table: marts.totals, on_foreign_change: heal`"""

    evolution: Evolution = Field(default=Evolution.EVOLVE, alias="schema")
    """Whether the published table may gain columns and wider types: with `evolve` new columns are NULL in days before
    them, `fail` refuses the run that brings some. None goes and none gets a narrower type with either. For
    `blocking_persistent` only. Example: `type: blocking_persistent, table: marts.totals, schema: fail`"""

    on_waiver_end: OnWaiverEnd = OnWaiverEnd.RETRACT
    """What becomes of rows of a published table that were made from data which a gate refuses, when the waiver ends by
    which it could be read: `retract` takes them out, `keep` leaves them there and marks them. For
    `blocking_persistent` only. Example: `type: blocking_persistent, table: marts.totals, on_waiver_end: keep`"""

    file_bytes: Annotated[Size, Field(ge=KILOBYTE)] = 128 * MEGABYTE
    """About how large a partition's file grows before another is begun. Example: `file_bytes: 64mb`"""

    columns: Mapping[str, ColumnForm] = Field(default_factory=dict)
    """All columns of the output, by name; see the fields of a column. Another column, a missing one, another type, or a
    NULL in one that may have none, is refused before anything is published. Without it any columns are taken.
    Example: `columns: {customer: {type: bigint, null: false, description: Who ordered}, spent: "decimal(18,2)"}`"""


class Output(OutputForm):
    """``falls_back`` says that its type was chosen by a mode which has it stored after certain failures, ``fallback``
    that there was one in the interval, ``worth`` whether `execution_mode: auto` has it stored in the interval. It is
    then in its stored form, and still of its type: see `plan.restart.after_failure` and `plan.waves.worth`. ``why``
    says why it has its type.
    """

    model_config = ConfigDict(validate_by_name=True)  # as manifests have it

    why: TypeReason = TypeReason.DECLARED
    falls_back: bool = False
    fallback: Fallback | None = None
    worth: Worth | None = None

    @property
    def stored(self) -> bool:
        """Whether its readers read it from a table now."""
        return self.type.stored or self.in_stored_form

    @property
    def in_stored_form(self) -> bool:
        """Whether it is stored in this interval though its type says otherwise."""
        return self.fallback is not None or (self.worth is not None and self.worth.stored)

    @property
    def may_have_table(self) -> bool:
        return self.type.stored or self.falls_back


class InputForm(SpecPart):
    """How a stage reads another stage, which the file names before it."""

    exchange: Exchange = Exchange.FORWARD
    """How the stage reads this input: `forward`, partition i reads partition i; `keyed`, each partition its own key
    groups; `broadcast`, all of it in each partition; `gather`, all of it in the only partition. A bare word stands
    for the mapping: `inputs: {orders: gather}`. Example: `exchange: keyed, key: customer`"""

    key: Columns = ()
    """Columns of the input that a keyed exchange groups by, one name or a list. Rows with equal keys meet in one
    partition. Example: `exchange: keyed, key: [country, customer]`"""

    frame: str | None = None
    """The parameter that the function takes it by, or the name that a query of SQL finds it by. Without it: the name of
    the stage that is read. So that stage can be renamed, and the code of its readers stays.
    Example: `frame: orders`"""


class Input(InputForm):
    """An edge into a stage; ``key`` names the columns of the producer that a keyed exchange groups by."""

    stage: str

    @property
    def given_as(self) -> str:
        return self.frame or self.stage


class StageSettings(KeepSettings):
    """What a stage says of itself, in the file as in the checked pipeline."""

    uid: str | None = None
    """What the stage is called in the ledger and in checkpoints. Give a renamed stage its old name, and it keeps its
    data. Without it: its name. Example: `uid: sums`"""

    was: Names = ()
    """What else the stage was called before, by name or uid, newest first: one or a list. Nothing that is on record is
    computed again, since its records stay under the last of these. No other stage may be called so now, or have been.
    Example: `was: [sums, totals]`"""

    key: Columns = ()
    """Columns of the output that tell a row's partition, where an input is keyed. Without it: the key of the first
    keyed input. Of a full outer join it has to be a column that is never NULL on one side only: `coalesce` the keys
    of both. Example: `key: customer`"""

    gate: str | None = None
    """The suite of expectations that each partition has to pass before it can be read: `include/suites/NAME.yaml` or
    `.json`, `FOLDER/NAME` for a suite of a project folder of Great Expectations, or `module:name` for one that Python
    makes; see gates.md.
    Example: `gate: totals`"""

    output: OutputForm = OutputForm()
    """How the output is kept; see the fields of `output`.
    Example: `output: {type: blocking_persistent, table: marts.totals}`"""

    state: Mapping[str, StateForm] = Field(default_factory=dict)
    """What the stage keeps from interval to interval, by names of your choice; see the fields of a state. Intervals
    then run in the order of the schedule.
    Example: `state: {totals: {kind: keyed, key: customer, columns: {customer: bigint, orders: bigint}}}`"""

    state_begins: IntervalText | None = None
    """The first interval of the stage's `state`, which begins with nothing; each later one needs all between. Without
    it state begins with the first interval that runs, unless an earlier one was asked for and has not finished.
    Example: `state: {totals: {kind: split, columns: {orders: bigint}}}, state_begins: 2026-11-01`"""

    on_complete: str | None = None
    """A function, as `module:function` below the project, that is called with what the stage has in a checkpoint each
    time that one of the run is complete: at least once for each, in order; see extensions.md. For a stored output.
    Example: `on_complete: jobs.sales:publish`"""

    per_wave: Switch = False
    """Whether the function, one of single rows of a source or `forward` inputs, is given those of a whole wave at once,
    with the column `_partition`, which it must keep.
    Example: `source: {kind: parquet, path: "${lake}/orders/*.parquet", splits: 16}, per_wave: true`"""

    on_code_change: OnCodeChange = OnCodeChange.RECOMPUTE
    """What becomes of recorded partitions when the code of the stage changes: they run again, or count as they are.
    Example: `on_code_change: keep`"""

    determinism: Determinism | None = None
    """What to do about code that may give other data next time. Without it: what the pipeline says.
    Example: `determinism: error`"""

    reads: StageReads = ReadsForm()
    """What the function reads beside its inputs, so that a change of it is seen; see the fields of `reads`. A bare word
    says what becomes of reads that are not declared.
    Example: `reads: {env: [TAX_RATE], files: [config/rates.csv], tables: [marts.customers], undeclared: strict}`"""

    files: Names = ()
    """Files below the project that the function works with, one path or a list, each name once. `ctx.file(NAME)` finds
    them where the function is called, and in UDFs: workers are sent each content once. It counts in the stage's key,
    and a file is declared in `reads`, too, by standing here.
    Example: `files: [config/rates.csv, models/churn.pkl]`"""

    effects: Effects | None = None
    """Whether its function may write tables or files while it is called, which may be more than once for a partition.
    Without it: what the pipeline says. Example: `effects: allowed`"""

    spark: Options = Field(default_factory=dict)
    """Settings of Spark for this stage, over those of the pipeline; they count in its key, and in those of its
    readers if it is not stored.
    Example: `spark: {"spark.sql.ansi.enabled": false}`"""

    resources: Resources = Resources()
    """What the application is given that computes the stage, over what the pipeline says; one for all stages that run
    together. For `launcher: submit`. Example: `resources: {executor_memory: 8g}`"""

    max_parallel_tasks: Count = 1
    """Over how many Airflow tasks the partitions of its region are dealt. Example: `max_parallel_tasks: 4`"""

    co_location: str | None = None
    """Stages with this name in common, and equal partitions, are computed in one task and Spark session.
    Example: `co_location: by_customer`"""

    airflow: TaskSettings = TaskSettings()
    """What Airflow is told of the stage's task; see the fields of `airflow`. Example: `airflow: {queue: large}`"""

    args: tuple[str, ...] = ()
    """Arguments of a `script`, with `${output}`, the folder that it writes to. By `${source}` and `${inputs.NAME}` its
    `spark.read` finds what the stage reads; there are `${params.NAME}`, `${interval}` and `${interval.start:%Y-%m-%d}`.
    Example: `script: jobs/old_job.py, args: [--day, "${interval.start:%Y-%m-%d}", "${source}", "${output}"]`"""

    params: Params = Field(default_factory=dict)
    """Values for `ctx.params` of this stage's function; they count in its key. Example: `params: {limit: 10}`"""


class Stage(StageSettings):
    """A node of the pipeline.

    ``key`` are the output columns that tell a row's partition, by default those of the first keyed input.
    ``partitions`` is the number of output partitions, whatever it came from; with ``auto_partitions`` it is a
    placeholder until it is decided for an interval, as for all that inherit it by forward inputs.
    ``max_parallelism_declared`` says that the author chose it: a default gives way to that of restored state.
    """

    name: str
    job: str
    output: Output = Output()
    source: Source | None = None
    inputs: tuple[Input, ...] = ()
    partitions: Count
    auto_partitions: bool = False
    max_parallelism: int = Field(ge=1, le=HIGHEST)
    max_parallelism_declared: bool = False

    @property
    def id(self) -> str:
        """Stable id under which the stage's records are kept."""
        return (self.uid or self.name, *self.was)[-1]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id under which something may be on record of it, the present one first."""
        return tuple(dict.fromkeys((self.id, self.uid or self.name, *self.was, self.name)))

    @property
    def entries(self) -> str:
        """Where its code begins: its job and, a line below, the class that reads its source, if one does."""
        reader = self.source.reader if self.source else None
        return f"{self.job}\n{reader}" if reader else self.job

    @property
    def is_script(self) -> bool:
        return is_script(self.job.partition(":")[0])

    @property
    def oldest(self) -> timedelta | None:
        """How old its data, or that of its source, may be."""
        ages = (self.max_age, self.source.max_age if self.source else None)
        return min((age for age in ages if age), default=None)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames that its function is called with, which a query of it finds them by."""
        return ("source",) if self.source else tuple(edge.given_as for edge in self.inputs)

    @property
    def states(self) -> tuple[StateShape, ...]:
        """What it keeps from interval to interval, as checkpoints describe it."""
        return tuple(form.shape(name) for name, form in self.state.items())

    def input(self, stage: str) -> Input:
        return next(edge for edge in self.inputs if edge.stage == stage)


class Pipeline(RunSettings):
    """A validated pipeline; stages are in topological order. ``variables`` are the values that were put into its file
    and suites, ``known_variables`` all that these may name. ``schedule`` is the cron of what ``starts`` its runs.
    """

    name: str
    file: str
    schedule: str | None = None
    starts: ScheduleForm = ScheduleForm()
    failures: tuple[FailureDeclaration, ...] = ()
    on_failure: tuple[NotifierDeclaration, ...] = ()
    on_gate_warning: tuple[NotifierDeclaration, ...] = ()
    on_resume: tuple[NotifierDeclaration, ...] = ()
    variables: Mapping[str, Any] = Field(default_factory=dict)
    known_variables: Mapping[str, Any] = Field(default_factory=dict, exclude=True)
    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return self.name

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def determinism_of(self, stage: Stage) -> DeterminismPolicy | None:
        return stage.determinism or self.determinism

    def reads_of(self, stage: Stage) -> Reads:
        declared = Reads.of(stage.reads, self.reads)
        return replace(declared, files=tuple(dict.fromkeys((*stage.files, *declared.files))))

    def effects_of(self, stage: Stage) -> Effects:
        return stage.effects or self.effects

    def spark_of(self, stage: Stage) -> Mapping[str, str]:
        """The settings that Spark's session has while the function of the stage is called."""
        return {**self.spark, **stage.spark}

    def resources_of(self, stages: Iterable[str]) -> Resources:
        """What the application is given that computes these stages, which run together."""
        return self.resources.under(self.stage(name).resources for name in stages)

    def is_result(self, stage: Stage) -> bool:
        """Whether it is there for more than stages of its own interval: for its users, or for the next interval, which
        goes on with the state that it keeps.
        """
        return stage.output.table is not None or bool(stage.state) or not self.readers(stage.name)

    def readers(self, name: str) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if any(edge.stage == name for edge in stage.inputs))
