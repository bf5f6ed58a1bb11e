"""A pipeline as written: every field optional, because what is missing or wrong is listed, not raised one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, PlainValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from stagehold.model.duration import AUTO
from stagehold.model.key_groups import HIGHEST
from stagehold.model.spec import (
    STALL_TIMEOUT,
    CheckpointSettings,
    DeterminismPolicy,
    Exchange,
    ExecutionMode,
    Failover,
    OnCodeChange,
    Output,
    PositiveDuration,
    RestartSettings,
    ScheduleMode,
    Speculation,
    VerifyPolicy,
)
from stagehold.model.spec_part import Count, SpecPart
from stagehold.model.spec_source import Bound, OnChange, Reread, SourceKind, Splits, SplitSize, Version
from stagehold.model.spec_yaml import MAPPING, Document, FieldPath, Problem

Columns = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]
Params = Annotated[Mapping[str, JsonValue], BeforeValidator(lambda given: {} if given is None else given)]
AutoCount = Annotated[int | Literal["auto"], PlainValidator(lambda given: _count_or_auto(given))]
# YAML reads an unquoted off as false.
Determinism = Annotated[DeterminismPolicy, BeforeValidator(lambda given: DeterminismPolicy.OFF if given is False else given)]
Switch = Annotated[bool, Field(strict=True)]
Options = Annotated[Mapping[str, str], BeforeValidator(lambda given: _option_texts(given))]


class InputForm(SpecPart):
    exchange: Exchange = Exchange.FORWARD
    """How the stage reads this input: `forward`, partition i reads partition i; `keyed`, each partition its own key
    groups; `broadcast`, all of it in each partition; `gather`, all of it in the only partition. A bare word stands
    for the mapping: `inputs: {orders: gather}`.
    Example: `exchange: keyed, key: customer`"""

    key: Columns = ()
    """Columns of the input that a keyed exchange groups by, one name or a list. Rows with equal keys meet in one
    partition.
    Example: `exchange: keyed, key: [country, customer]`"""


class SourceForm(SpecPart):
    kind: SourceKind | None = None
    """What is read: files of one format, a Delta table, or a table of a database. Needed.
    Example: `kind: parquet, path: "${lake}/orders/*.parquet", splits: 16`"""

    path: str | None = None
    """A file, a folder or a glob with `*`, `?`, `[...]` and `**`, or a Delta table. `${lake}` is the lake. Not for
    `jdbc`.
    Example: `path: "s3://shop/orders/**/*.parquet"`"""

    splits: Splits | None = None
    """How what is read is cut into partitions: a number, a size for each, or a list of what each split reads (files,
    or for `jdbc` conditions). Needed.
    Example: `splits: {bytes: 128mb}`"""

    incremental: Switch | None = None
    """Whether an interval takes what no interval has taken, and keeps it. For files and Delta tables.
    Example: `incremental: true`"""

    on_change: OnChange | None = None
    """What to do when something that was read before is not what it was: fail, or read on.
    Example: `incremental: true, on_change: ignore`"""

    ddl: str | None = Field(default=None, alias="schema")
    """Columns with their types, for `csv` and `json`; `infer` guesses them from the first file.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string"`"""

    header: Switch | None = None
    """Whether the first line of a `csv` file names the columns; they are compared with the schema.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", header: true`"""

    delimiter: str | None = None
    """What stands between two values of a `csv` file. Without it: a comma.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", delimiter: ";"`"""

    options: Options | None = None
    """Options of Spark's reader for `csv`, `json` and `jdbc` that no other field stands for.
    Example: `kind: csv, path: "${lake}/orders/*.csv", splits: 4, schema: "id bigint, name string", options: {mode:
    PERMISSIVE}`"""

    version: Version | None = None
    """The version of a Delta table to read. Without it: the one that is newest when the run plans.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, version: 12`"""

    from_version: Version | None = None
    """Read what the commits of a Delta table from this one on added.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, from_version: 3, to_version: 12`"""

    to_version: Version | None = None
    """The last of those commits.
    Example: `kind: delta, path: "${lake}/orders", splits: 4, from_version: 3, to_version: 12`"""

    url: str | None = None
    """Address of a database, beginning with `jdbc:` and without a password.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    driver: str | None = None
    """Java class of the database's driver, where its JAR does not say so itself.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, driver: org.postgresql.Driver`"""

    table: str | None = None
    """Table of the database to read; or a `query`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    query: str | None = None
    """Query to read in place of a `table`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", query: "SELECT id, total FROM orders", splits: 1`"""

    column: str | None = None
    """Column by whose range a table of a database is dealt into splits.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    lower: Bound | None = None
    """Where the second split begins, more or less: the first takes everything below, and NULL.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: day, lower: "2026-01-01", upper:
    "2027-01-01", splits: 12`"""

    upper: Bound | None = None
    """Where the last split ends its equal share; it also takes everything above. Of the type of `lower`.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8`"""

    user_variable: str | None = None
    """Environment variable that has the database's user.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, user_variable: SHOP_USER`"""

    password_variable: str | None = None
    """Environment variable that has the password.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, password_variable: SHOP_PASSWORD`"""

    reread: Reread | None = None
    """Whether rows of a database that an interval has read count for all its runs, or are read again by each new run.
    Example: `kind: jdbc, url: "jdbc:postgresql://db/shop", table: orders, column: id, lower: 1, upper: 100000,
    splits: 8, reread: run`"""

    @property
    def count(self) -> int | None:
        """How many splits there are, where the file tells."""
        if isinstance(self.splits, tuple):
            return len(self.splits)
        return None if isinstance(self.splits, SplitSize) else self.splits

    @property
    def by_size(self) -> bool:
        """Whether the number of splits follows from the bytes that there are."""
        return isinstance(self.splits, SplitSize)

    @property
    def given(self) -> Mapping[str, Any]:
        """Fields that were written down, by the names they have in the file."""
        values = self.model_dump(exclude_none=True)
        return {written_name(type(self), name): value for name, value in values.items()}


class StageForm(SpecPart):
    job: str | None = None
    """The stage function, as `module:function` below the project. Needed. Example: `job: jobs.sales:totals`"""

    uid: str | None = None
    """What the stage is called in the ledger and in checkpoints. Give a renamed stage its old name, and it keeps its
    data. Without it: its name.
    Example: `uid: sums`"""

    source: SourceForm | None = None
    """What a stage without inputs reads; see the fields of `source`.
    Example: `source: {kind: parquet, path: "${lake}/orders/*.parquet", splits: 16}`"""

    inputs: Mapping[str, InputForm] = Field(default_factory=dict)
    """The stages that it reads, by name; see the fields of an input. Either a source or inputs.
    Example: `inputs: {orders: {exchange: keyed, key: customer}}`"""

    partitions: AutoCount | None = None
    """How many partitions the output has. Without it: as many as the source has splits or a `forward` input has
    partitions, and one where everything is read. Needed for a `keyed` input; `auto` counts by the size of the
    input, once per interval.
    Example: `partitions: auto`"""

    max_parallelism: int | None = Field(default=None, strict=True, ge=1, le=HIGHEST)
    """How many key groups there are, so also the most partitions there can ever be. Keep it for life: another number
    deals all keys anew. Without it: the next power of two above one and a half times the partitions, at least 128.
    Example: `max_parallelism: 512`"""

    key: Columns = ()
    """Columns of the output that tell a row's partition, where an input is keyed. Without it: the key of the first
    keyed input. Of a full outer join it has to be a column that is never NULL on one side only: `coalesce` the keys
    of both; see design.md.
    Example: `key: customer`"""

    gate: str | None = None
    """The suite of expectations that each partition has to pass before it can be read: `include/suites/NAME.yaml`.
    Example: `gate: totals`"""

    output: Output = Output()
    """How the output is kept; see the fields of `output`.
    Example: `output: {type: blocking_persistent, table: marts.totals}`"""

    per_wave: Switch = False
    """Whether the function is given the rows of a whole wave at once, with the column `_partition`, which it must
    keep. For functions that make rows one by one from a source or `forward` inputs.
    Example: `source: {kind: parquet, path: "${lake}/orders/*.parquet", splits: 16}, per_wave: true`"""

    on_code_change: OnCodeChange = OnCodeChange.RECOMPUTE
    """What becomes of recorded partitions when the code of the stage changes: they run again, or count as they are.
    Example: `on_code_change: keep`"""

    determinism: Determinism | None = None
    """What to do about code that may give other data next time, for this stage. Without it: the pipeline's.
    Example: `determinism: error`"""

    max_parallel_tasks: Count = 1
    """Over how many Airflow tasks the partitions of its region are dealt. Example: `max_parallel_tasks: 4`"""

    co_location: str | None = None
    """Stages with this name in common, and equal partitions, are computed in one task and Spark session.
    Example: `co_location: by_customer`"""

    params: Params = Field(default_factory=dict)
    """Values for `ctx.params` of this stage's function; they count in its key. Example: `params: {limit: 10}`"""


class PipelineForm(SpecPart):
    pipeline: str | None = None
    """The pipeline's name, also of its DAG: lower-case letters, digits and single underscores. Needed.
    Example: `pipeline: sales`"""

    schedule: str | None = None
    """A cron expression with five fields, or `@daily` and its like. Without it: run by hand.
    Example: `schedule: "0 2 * * *"`"""

    run_timeout: PositiveDuration | None = None
    """A run that takes longer is cancelled; what it made is kept. Example: `run_timeout: 4h`"""

    stall_timeout: PositiveDuration = STALL_TIMEOUT
    """A call to Spark that makes no progress for so long is interrupted, and stacks of all processes are kept. A task that works on
    one partition reports none meanwhile. Example: `stall_timeout: 30min`"""

    schedule_mode: ScheduleMode = ScheduleMode.LAZY_FROM_SOURCES
    """When tasks start: those of a region when what it reads is there; `eager`: all at once, and each waits for its
    partitions.
    Example: `schedule_mode: eager`"""

    execution_mode: ExecutionMode = ExecutionMode.BATCH
    """Chooses the type of every output that names none. `batch` stores what is read by key or whole and fuses
    `forward` stages; `batch_forced` stores everything; `pipelined` and its kin store as little as they can.
    Example: `execution_mode: batch_forced`"""

    checkpoint: CheckpointSettings = CheckpointSettings()
    """How long a wave is, and when checkpoints are taken; see the fields of `checkpoint`.
    Example: `checkpoint: {interval: 30s}`"""

    restart: RestartSettings = RestartSettings()
    """What happens after a failure; see the fields of `restart`.
    Example: `restart: {strategy: fixed-delay, attempts: 3, delay: 10s}`"""

    failures: Any = ()
    """Your own rules for the class of a failure; the first that fits counts, before those that are built in. See the
    fields of a rule.
    Example: `failures: [{error: "builtins:KeyError", class: recoverable}]`"""

    failover: Failover = Failover.REGION
    """What runs again after a failure: the region with all that follows from it, or the whole run.
    Example: `failover: full`"""

    early_cutoff: Switch = False
    """Whether a reader stays as it is when its input was computed again to equal content, though by other code.
    Example: `early_cutoff: true`"""

    determinism: Determinism | None = None
    """What to do about code that may give other data next time: `error` refuses it, `off` does not look, else it is said. Data that
    did come out different is an error, except with `warn`: then it is published and its readers run again.
    Example: `determinism: error`"""

    verify: VerifyPolicy = VerifyPolicy.SAMPLE
    """Which reused partitions are compared with their fingerprints before anything is made from them: two of each
    input, all, or none.
    Example: `verify: always`"""

    speculation: Speculation | None = None
    """Whether a task that is done helps with the share of a slow one; see the fields of `speculation`.
    Example: `speculation: {least_seconds: 30}`"""

    params: Params = Field(default_factory=dict)
    """Parameters with their defaults. A run may be given other values; functions find them in `ctx.params`.
    Example: `params: {country: de, limit: 10}`"""

    stages: Mapping[str, StageForm] = Field(default_factory=dict)
    """The stages by name; see the fields of a stage. One or more.
    Example: `stages: {orders: {job: "jobs.sales:orders", source: {kind: parquet, path: "${lake}/orders", splits:
    4}}}`"""


def read_form(document: Document) -> tuple[PipelineForm, tuple[Problem, ...]]:
    """Read what can be read. A field with a problem is left out of the form, so that the rest is still checked."""
    data = _with_long_inputs(document.data)
    problems: list[Problem] = []
    while True:
        try:
            return PipelineForm.model_validate(data), tuple(problems)
        except ValidationError as error:
            for details in error.errors():
                path = _written_path(data, details["loc"])
                problems.append(Problem(path, show(details["input"]), _allowed(details, path)))
            for problem in problems:
                _remove(data, problem.path)


def suggest(given: str, known: tuple[str, ...]) -> str:
    """The known names as a text, with the one that was probably meant."""
    near = get_close_matches(given, known, n=1)
    return f"{', '.join(known) or 'none'}{f' (did you mean {near[0]}?)' if near else ''}"


def show(given: object) -> str:
    """A value as one short text for a message."""
    if given is None:
        return "nothing"
    if isinstance(given, Mapping):
        return "a mapping"
    text = repr(list(given) if isinstance(given, tuple) else given)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _count_or_auto(given: object) -> int | str:
    if given == AUTO or (type(given) is int and given >= 1):
        return given
    raise PydanticCustomError("partitions", "a whole number, 1 or more, or auto")


def _with_long_inputs(data: Any) -> Any:
    """A private copy in which ``inputs: {orders: forward}`` is ``inputs: {orders: {exchange: forward}}``."""
    copy = _copy(data)
    for inputs in _inputs(copy):
        inputs.update({name: {"exchange": edge} for name, edge in inputs.items() if not isinstance(edge, dict | list)})
    return copy


def _inputs(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stages = data.get("stages")
    for stage in stages.values() if isinstance(stages, dict) else ():
        inputs = stage.get("inputs") if isinstance(stage, dict) else None
        if isinstance(inputs, dict):
            yield inputs


def _copy(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _copy(item) for key, item in data.items()}
    return [_copy(item) for item in data] if isinstance(data, list | tuple) else data


def _written_path(data: Any, location: tuple[int | str, ...]) -> FieldPath:
    """The part of pydantic's location that leads through mappings of ``data``: what can be left out as a whole."""
    path: list[str] = []
    for part in location:
        if not isinstance(data, dict) or part not in data:
            break
        path.append(str(part))
        data = data[part]
    return tuple(path)


def _remove(data: dict[str, Any], path: FieldPath) -> None:
    for part in path[:-1]:
        data = data.get(part, {})
    data.pop(path[-1], None)


def _fields_at(path: FieldPath) -> tuple[str, ...]:
    match path:
        case ():
            form: type[SpecPart] = PipelineForm
        case ("stages", _):
            form = StageForm
        case ("stages", _, "inputs", _):
            form = InputForm
        case ("stages", _, "source"):
            form = SourceForm
        case ("stages", _, "output"):
            form = Output
        case ("checkpoint",):
            form = CheckpointSettings
        case ("speculation",):
            form = Speculation
        case _:
            form = RestartSettings
    return tuple(written_name(form, name) for name in form.model_fields)


def written_name(form: type[SpecPart], field: str) -> str:
    """What a field of ``form`` is called in a file."""
    return form.model_fields[field].alias or field


def _option_texts(given: Any) -> Any:
    """Options as Spark takes them; ``true`` and ``3`` are texts there."""
    if not isinstance(given, Mapping):
        return given
    return {name: str(value).lower() if isinstance(value, bool | int | float) else value for name, value in given.items()}


TEXTS = {
    "model_type": MAPPING,
    "dict_type": MAPPING,
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "tuple_type": "a name or a list of names",
    "invalid-json-value": "text, number, true, false, list or mapping; a date goes in quotes",
}


def _allowed(details: ErrorDetails, path: FieldPath) -> str:
    facts = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            return suggest(path[-1], _fields_at(path[:-1]))
        case "enum":
            known = tuple(word.strip("' ") for word in facts["expected"].replace(" or ", ", ").split(","))
            return suggest(str(details["input"]), known)
        case "greater_than":
            return f"more than {facts['gt']:g}"
        case "greater_than_equal":
            return f"{facts['ge']:g} or more"
        case "less_than_equal":
            return f"{facts['le']:g} or less"
        case kind:
            return TEXTS.get(kind, details["msg"])
