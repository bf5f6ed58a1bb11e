"""The reference of every field of a pipeline file, made from the form classes and the texts that stand below their fields.

`make docs` writes it to docs/pipeline-reference.md.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from stagehold.model.byte_size import write_byte_size
from stagehold.model.duration import write_duration
from stagehold.model.spec import CheckpointSettings, FailureDeclaration, Output, RestartSettings, Speculation
from stagehold.model.spec_form import InputForm, PipelineForm, SourceForm, StageForm, written_name
from stagehold.model.spec_part import SpecPart
from stagehold.model.spec_source import SplitSize

EXAMPLE = re.compile(r"\s*Example: `(?P<example>[^`]+)`$")
BEGIN = """# Fields of a pipeline file

Made from the code by `make docs`; do not edit it. Each example stands in braces, or as lines of its own, where the field is, in a file that
the loader takes. Durations are such as `30s`, `10min` or `4h`, sizes such as `128mb`.
"""


@dataclass(frozen=True)
class Section:
    """One form and where it stands in a file."""

    title: str
    form: type[SpecPart]


SECTIONS = (
    Section("The pipeline", PipelineForm),
    Section("A stage: `stages.NAME`", StageForm),
    Section("An input: `stages.NAME.inputs.PRODUCER`", InputForm),
    Section("A source: `stages.NAME.source`", SourceForm),
    Section("An output: `stages.NAME.output`", Output),
    Section("`checkpoint`", CheckpointSettings),
    Section("`restart`", RestartSettings),
    Section("A rule of `failures`", FailureDeclaration),
    Section("`speculation`", Speculation),
)
OTHER_NAMES: Mapping[tuple[type[SpecPart], str], str] = {(FailureDeclaration, "kind"): "class"}  # written by hand, not by pydantic
SPECIAL: Mapping[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    timedelta: "duration",
    SplitSize: "`{bytes: SIZE}`",
    Any: "list of rules",
}


@dataclass(frozen=True)
class Field:
    """One line of the reference."""

    name: str
    kind: str
    default: str
    text: str
    example: str


def fields_of(form: type[SpecPart]) -> tuple[Field, ...]:
    """:raises LookupError: a field has no text below it, or none with an example"""
    texts = _texts(form)
    return tuple(_field(form, name, info, texts) for name, info in form.model_fields.items())


def reference() -> str:
    """The whole page."""
    return BEGIN + "".join(line for section in SECTIONS for line in _section(section))


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {section.title}\n\n| Field | Type | Default | Meaning | Example |\n|---|---|---|---|---|\n"
    for field in fields_of(section.form):
        cells = (f"`{field.name}`", field.kind, field.default, field.text, f"`{field.example}`")
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _field(form: type[SpecPart], name: str, info: FieldInfo, texts: Mapping[str, str]) -> Field:
    written = OTHER_NAMES.get((form, name), written_name(form, name))
    text = texts.get(name, "")
    found = EXAMPLE.search(text)
    if found is None:
        raise LookupError(f"{form.__name__}.{name} needs a text below it that ends with: Example: `{written}: ...`")
    return Field(written, _kind(info.annotation), _default(info), text[: found.start()], found["example"])


def _texts(form: type[SpecPart]) -> dict[str, str]:
    """The text below each field of a class, in one line."""
    (body,) = ast.parse(inspect.getsource(form)).body
    assert isinstance(body, ast.ClassDef)
    pairs = zip(body.body, body.body[1:], strict=False)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or isinstance(value, SpecPart) or (not value and value is not False and value != 0):
        return ""
    if isinstance(value, timedelta):
        return f"`{write_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{write_byte_size(value)}`" if info.annotation is int and value > 1_000_000 else f"`{value}`"


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
        return " or ".join(dict.fromkeys(_kind(one) for one in arguments if one is not types.NoneType))
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin is tuple:
        return "text or list of texts"
    return "mapping" if origin is not None else str(getattr(annotation, "__name__", annotation))


def main(path: str) -> None:
    Path(path).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
