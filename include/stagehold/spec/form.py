"""A pipeline as written: every field optional, because what is missing or wrong is listed, not raised one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from stagehold.model.keys.key_groups import HIGHEST
from stagehold.spec.pipeline import InputForm, OutputForm, StageSettings
from stagehold.spec.settings.airflow_settings import DagSettings, Schedule, ScheduleForm, TaskSettings
from stagehold.spec.settings.fields import CountOrAuto, Environment, Params, SpecPart, field_names, written_name
from stagehold.spec.settings.launch_settings import Resources
from stagehold.spec.settings.output_settings import ColumnForm, StateForm
from stagehold.spec.settings.reads import ReadsForm
from stagehold.spec.settings.restart import RestartSettings
from stagehold.spec.settings.run_settings import CancellationSettings, CheckpointSettings, RunSettings, Speculation
from stagehold.spec.settings.source import SourceForm
from stagehold.spec.yaml import MAPPING, Document, FieldPath, Problem

# Fields in which no variables are put in. A pipeline is looked for by its name in files of which nothing else is read.
AS_THEY_STAND = ("vars", "env", "pipeline")


class StageForm(StageSettings):
    extends: str | None = None
    """A stage of this file, or one of its `templates`, whose fields this one has where it does not say them itself.
    Mappings such as `params` and `source` are put together by the names in them; `inputs` and `state` are not, `job`
    stands for `sql`, and `inputs` for a `source`.
    Example: `extends: orders`"""

    job: str | None = None
    """The stage function, as `module:function` below the project or its `src`. Needed, but where there is `sql` or a
    `script`.
    Example: `job: jobs.sales:totals`"""

    sql: str | None = None
    """SQL in place of a `job`: a file below the project, or the text itself, which has several words and does not end
    in `.sql`. Its last statement is the output. It finds its frames as `source`, or by the names of its inputs, and
    `:interval`, `:interval_start`, `:interval_end` and `:params.NAME` by a colon; see declare.md.
    Example: `sql: sql/clean.sql`"""

    script: str | None = None
    """A whole script in place of a `job`: a file below the project that is run as `spark-submit` runs it, with `args`,
    and writes its rows to `${output}` as Parquet, ORC, Avro or Delta. The stage has one partition; see move.md.
    Example: `script: jobs/old_job.py, args: ["${source}", "${output}"]`"""

    source: SourceForm | None = None
    """What a stage without inputs reads; see the fields of `source`. Or the name of a source that `include/sources`
    declares, alone or as `use` beside fields that stand over its own.
    Example: `source: {kind: parquet, path: "${lake}/orders/*.parquet", splits: 16}`"""

    inputs: Mapping[str, InputForm] = Field(default_factory=dict)
    """The stages that it reads, by name; see the fields of an input. Either a source or inputs.
    Example: `inputs: {orders: {exchange: keyed, key: customer}}`"""

    partitions: CountOrAuto | None = None
    """How many partitions the output has. Without it: as many as the source has splits or a `forward` input has
    partitions, and one where everything is read. Needed for a `keyed` input; `auto` counts by the size of the
    input, once per interval.
    Example: `partitions: auto`"""

    max_parallelism: int | None = Field(default=None, strict=True, ge=1, le=HIGHEST)
    """How many key groups there are, so also the most partitions there can ever be. Keep it for life: another number
    deals all keys anew. Without it: the next power of two above one and a half times the partitions, at least 128.
    Example: `max_parallelism: 512`"""


class PipelineForm(RunSettings):
    pipeline: str | None = None
    """The pipeline's name, also of its DAG: lower-case letters, digits and single underscores. Needed.
    Example: `pipeline: sales`"""

    schedule: Schedule = ScheduleForm()
    """When runs start: a cron expression with five fields, or `@daily` and its like; or assets, or a timetable of
    Airflow, see the fields of `schedule`. Without it: run by hand.
    Example: `schedule: "0 2 * * *"`"""

    stages: Mapping[str, StageForm] = Field(default_factory=dict)
    """The stages by name; see the fields of a stage. One or more.
    Example: `stages: {orders: {job: "jobs.sales:orders", source: {kind: parquet, path: "${lake}/orders", splits:
    4}}}`"""

    templates: Mapping[str, StageForm] = Field(default_factory=dict)
    """Fields that stages have in common, by names of your choice: a stage that says `extends: NAME` has them.
    Example: `templates: {nightly: {determinism: error, spark: {"spark.sql.ansi.enabled": false}}}`"""

    vars: Params = Field(default_factory=dict)
    """Values that the file writes as `${vars.NAME}` wherever a value stands. They stand over those in `stagehold.yaml`
    of the project; see declare.md.
    Example: `vars: {country: de}`"""

    env: Environment = Field(default_factory=dict)
    """Variables of the environment that the file writes as `${env.NAME}`: a list of names, or names with what counts
    where they are not set.
    Example: `env: {REGION: eu}`"""

    failures: Any = ()
    """Your own rules for the class of a failure; the first that fits counts, before those that are built in. See the
    fields of a rule.
    Example: `failures: [{error: "builtins:KeyError", class: recoverable}]`"""

    on_failure: object = ()
    """Notifiers that are told once a run has failed, and not of each retry; see the fields of a notifier and
    notifications.md.
    Example: `on_failure: {notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to:
    me@example.com}}`"""

    on_gate_warning: object = ()
    """Notifiers that are told what gates did not let pass or warned of, when a task that had data judged ends.
    Example: `on_gate_warning: {notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to:
    me@example.com}}`"""

    on_resume: object = ()
    """Notifiers that are told when a run goes on that had failed or was cancelled.
    Example: `on_resume: [{notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to:
    me@example.com}}]`"""


def read_form(document: Document) -> tuple[PipelineForm, tuple[Problem, ...]]:
    """Read what can be read. A field with a problem is left out of the form, so that the rest is still checked."""
    data = _without_bare_words(document.data)
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
    """The known names as a text, with the name that was probably meant."""
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


BARE_WORDS = {
    ("inputs",): "exchange",
    ("output", "columns"): "type",
    ("source", "columns"): "type",
}  # the field that a word in place of one stands for


def _without_bare_words(data: Any) -> Any:
    """A private copy in which ``inputs: {orders: forward}`` is ``inputs: {orders: {exchange: forward}}``."""
    copy = _copy(data)
    for path, field in BARE_WORDS.items():
        for parts in _of_stages(copy, path):
            parts.update({name: {field: word} for name, word in parts.items() if not isinstance(word, dict | list)})
    return copy


def _of_stages(data: dict[str, Any], path: FieldPath) -> Iterator[dict[str, Any]]:
    """The mapping at a path in each stage or template that has it."""
    named = (data.get(kind) for kind in ("stages", "templates"))
    for found in (each for stages in named if isinstance(stages, dict) for each in stages.values()):
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, dict):
            yield found


def _copy(data: Any) -> Any:
    if isinstance(data, Mapping):
        # `null`, a field of a column, is None to whoever loads YAML by itself
        return {"null" if key is None else str(key): _copy(item) for key, item in data.items()}
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


OF_THE_PIPELINE: Mapping[str, type[SpecPart]] = {
    "airflow": DagSettings,
    "cancellation": CancellationSettings,
    "checkpoint": CheckpointSettings,
    "resources": Resources,
    "restart": RestartSettings,
    "schedule": ScheduleForm,
    "speculation": Speculation,
}
OF_A_STAGE: Mapping[str, type[SpecPart]] = {
    "airflow": TaskSettings,
    "output": OutputForm,
    "reads": ReadsForm,
    "resources": Resources,
    "source": SourceForm,
}


def _fields_at(path: FieldPath) -> tuple[str, ...]:
    match path:
        case ():
            form: type[SpecPart] = PipelineForm
        case ("stages" | "templates", _):
            form = StageForm
        case ("stages" | "templates", _, "inputs", _):
            form = InputForm
        case ("stages" | "templates", _, "state", _):
            form = StateForm
        case ("stages" | "templates", _, "output" | "source", "columns", _):
            form = ColumnForm
        case ("stages" | "templates", _, section):
            form = OF_A_STAGE[section]
        case _:
            form = OF_THE_PIPELINE[path[0]]
    return tuple(written_name(form, name) for name in field_names(form))


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
