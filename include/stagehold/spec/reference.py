"""The reference of every field of a pipeline file, made from the form classes and the texts that stand below their
fields.

`make docs` writes it to docs/reference/pipeline.md.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import PlainSerializer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from stagehold.model.units import write_duration, write_size
from stagehold.spec.form import PipelineForm, StageForm
from stagehold.spec.pipeline import InputForm, OutputForm
from stagehold.spec.settings.airflow_settings import DagSettings, NotifierDeclaration, ScheduleForm, TaskSettings
from stagehold.spec.settings.fields import SpecPart, field_names, written_name
from stagehold.spec.settings.launch_settings import Resources
from stagehold.spec.settings.output_settings import ColumnForm, StateForm
from stagehold.spec.settings.reads import ReadsForm
from stagehold.spec.settings.restart import FailureDeclaration, RestartSettings
from stagehold.spec.settings.run_settings import CancellationSettings, CheckpointSettings, Speculation
from stagehold.spec.settings.source import SourceForm
from stagehold.spec.settings.split_forms import AssignedSplits, SplitSize

EXAMPLE = re.compile(r"\s*Example: `(?P<example>[^`]+)`$")
BEGIN = """# Fields of a pipeline file

Made from the code by `make docs`; do not edit it. Each example stands in braces, or as lines of its own, where the
field is, in a file that the loader takes. Durations are such as `30s`, `10min` or `4h`, sizes such as `128mb`.
"""


# The forms, by their titles, which say where each stands in a file.
SECTIONS: Mapping[str, type[SpecPart]] = {
    "The pipeline": PipelineForm,
    "A stage: `stages.NAME`": StageForm,
    "An input: `stages.NAME.inputs.PRODUCER`": InputForm,
    "A source: `stages.NAME.source`": SourceForm,
    "An output: `stages.NAME.output`": OutputForm,
    "A column: `stages.NAME.output.columns.COLUMN`": ColumnForm,
    "A state: `stages.NAME.state.STATE`": StateForm,
    "`reads` of a stage: `stages.NAME.reads`": ReadsForm,
    "`airflow` of a stage: `stages.NAME.airflow`": TaskSettings,
    "`airflow` of the pipeline": DagSettings,
    "`cancellation`": CancellationSettings,
    "`checkpoint`": CheckpointSettings,
    "`resources` of the pipeline or a stage": Resources,
    "`restart`": RestartSettings,
    "`schedule`": ScheduleForm,
    "A rule of `failures`": FailureDeclaration,
    "A notifier of `on_failure`, `on_gate_warning` or `on_resume`": NotifierDeclaration,
    "`speculation`": Speculation,
}
# written by hand, not by pydantic
OTHER_NAMES: Mapping[tuple[type[SpecPart], str], str] = {(FailureDeclaration, "kind"): "class"}
SPECIAL: Mapping[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    timedelta: "duration",
    SplitSize: "`{bytes: SIZE}`",
    AssignedSplits: "`{count: NUMBER, assignment: static}` or `dynamic`",
    Any: "list of rules",
    object: "mapping or list of mappings",
}


def fields_of(form: type[SpecPart]) -> Iterator[tuple[str, str, str, str, str]]:
    """The lines of the reference: each field's name, type, default, meaning and example.

    :raises LookupError: a field has no text below it, or none with an example
    """
    texts = _texts(form)
    return (_field(form, name, texts.get(name, "")) for name in field_names(form))


def reference() -> str:
    """The whole page."""
    return BEGIN + "".join(line for title, form in SECTIONS.items() for line in _section(title, form))


def _section(title: str, form: type[SpecPart]) -> Iterator[str]:
    yield f"\n## {title}\n\n| Field | Type | Default | Meaning | Example |\n|---|---|---|---|---|\n"
    for name, kind, default, text, example in fields_of(form):
        cells = (f"`{name}`", kind, default, text, f"`{example}`")
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _field(form: type[SpecPart], name: str, text: str) -> tuple[str, str, str, str, str]:
    info = form.model_fields[name]
    written = OTHER_NAMES.get((form, name), written_name(form, name))
    found = EXAMPLE.search(text)
    if found is None:
        raise LookupError(f"{form.__name__}.{name} needs a text below it that ends with: Example: `{written}: ...`")
    kind = "size" if _is_size(info) else _kind(info.annotation)
    return written, kind, _default(info), text[: found.start()], found["example"]


def _texts(form: type[SpecPart]) -> dict[str, str]:
    """The text below each field of a class and of its bases, in one line."""
    parts = [part for part in reversed(form.__mro__) if issubclass(part, SpecPart)]
    return {name: text for part in parts for name, text in _own_texts(part)}


def _own_texts(part: type[SpecPart]) -> Iterator[tuple[str, str]]:
    (body,) = ast.parse(inspect.getsource(part)).body
    assert isinstance(body, ast.ClassDef)
    for field, text in pairwise(body.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    if (
        value is None
        or value is PydanticUndefined
        or isinstance(value, SpecPart)
        or (not value and value is not False and value != 0)
    ):
        return ""
    if isinstance(value, timedelta):
        return f"`{write_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{write_size(value)}`" if _is_size(info) else f"`{value}`"


def _is_size(info: FieldInfo) -> bool:
    """Whether the number is one of bytes; a file may say it with a unit."""
    return any(isinstance(part, PlainSerializer) and part.func is write_size for part in info.metadata)


def _kind(annotation: Any) -> str:
    if annotation in SPECIAL:
        return SPECIAL[annotation]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return ", ".join(f"`{word.value}`" for word in annotation)
    if isinstance(annotation, type) and issubclass(annotation, SpecPart):
        return "mapping"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(argument) for argument in arguments if argument is not types.NoneType))
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin is tuple:
        return "text or list of texts"
    return "mapping" if origin is not None else str(getattr(annotation, "__name__", annotation))
