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
    key: Columns = ()


class SourceForm(SpecPart):
    kind: SourceKind | None = None
    path: str | None = None
    splits: Splits | None = None
    incremental: Switch | None = None
    on_change: OnChange | None = None
    ddl: str | None = Field(default=None, alias="schema")
    header: Switch | None = None
    delimiter: str | None = None
    options: Options | None = None
    version: Version | None = None
    from_version: Version | None = None
    to_version: Version | None = None
    url: str | None = None
    driver: str | None = None
    table: str | None = None
    query: str | None = None
    column: str | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    user_variable: str | None = None
    password_variable: str | None = None
    reread: Reread | None = None

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
    uid: str | None = None
    source: SourceForm | None = None
    inputs: Mapping[str, InputForm] = Field(default_factory=dict)
    partitions: AutoCount | None = None
    max_parallelism: int | None = Field(default=None, strict=True, ge=1, le=HIGHEST)
    key: Columns = ()
    gate: str | None = None
    output: Output = Output()
    per_wave: Switch = False
    on_code_change: OnCodeChange = OnCodeChange.RECOMPUTE
    determinism: Determinism | None = None
    max_parallel_tasks: Count = 1
    co_location: str | None = None
    params: Params = Field(default_factory=dict)


class PipelineForm(SpecPart):
    pipeline: str | None = None
    schedule: str | None = None
    run_timeout: PositiveDuration | None = None
    schedule_mode: ScheduleMode = ScheduleMode.LAZY_FROM_SOURCES
    execution_mode: ExecutionMode = ExecutionMode.BATCH
    checkpoint: CheckpointSettings = CheckpointSettings()
    restart: RestartSettings = RestartSettings()
    failures: Any = ()
    failover: Failover = Failover.REGION
    early_cutoff: Switch = False
    determinism: Determinism = DeterminismPolicy.WARN
    verify: VerifyPolicy = VerifyPolicy.SAMPLE
    speculation: Speculation | None = None
    params: Params = Field(default_factory=dict)
    stages: Mapping[str, StageForm] = Field(default_factory=dict)


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
        case "greater_than_equal":
            return f"{facts['ge']:g} or more"
        case "less_than_equal":
            return f"{facts['le']:g} or less"
        case kind:
            return TEXTS.get(kind, details["msg"])
