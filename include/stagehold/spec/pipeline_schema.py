"""The JSON Schema of a pipeline file, by which editors complete and check it, made from the form classes.

`make docs` writes it into the package and beside the reference. A file that it refuses the loader refuses, too. What
the loader refuses beyond that, since it takes several fields, the project's code or its suites to see, no schema says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from stagehold.model.records import FailureClass
from stagehold.spec.form import AS_THEY_STAND, BARE_WORDS, PipelineForm, StageForm
from stagehold.spec.pipeline import InputForm, OutputForm
from stagehold.spec.reference import OTHER_NAMES, SECTIONS, fields_of
from stagehold.spec.settings.airflow_settings import Hook, NotifierDeclaration
from stagehold.spec.settings.fields import SpecPart
from stagehold.spec.settings.output_settings import ColumnForm
from stagehold.spec.settings.restart import FailureDeclaration
from stagehold.spec.settings.source import SourceForm

FILE = Path(__file__).with_name("pipeline.schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OF_BARE_WORDS: Mapping[tuple[str, ...], tuple[type[SpecPart], type[SpecPart]]] = {
    ("inputs",): (StageForm, InputForm),
    ("output", "columns"): (OutputForm, ColumnForm),
    ("source", "columns"): (SourceForm, ColumnForm),
}  # with the form that has the mapping
A_NAME = {"type": "string", "description": "A source that a file of include/sources declares, by the file's name."}
VARIABLE = {"type": "string", "pattern": r"\$\{(vars|env)\.", "description": "A value of `vars` or `env`."}
MADE_BY_PYDANTIC = ("default", "title")  # defaults stand in the text of a field, as a file writes them


def pipeline_schema() -> dict[str, Any]:
    """The schema, with what the reference says of each field."""
    forms = (PipelineForm, FailureDeclaration, NotifierDeclaration)
    made = [(form, "validation", TypeAdapter(form)) for form in forms]
    _, found = TypeAdapter.json_schemas([(form.__name__, "validation", adapter) for form, _, adapter in made])
    parts: dict[str, Any] = found["$defs"]
    for form in SECTIONS.values():
        _tell(form, parts[form.__name__])
    for path, field in BARE_WORDS.items():
        _take_bare_words(parts, path, field)
    _take_lists(parts)
    source = parts[StageForm.__name__]["properties"]["source"]
    parts[StageForm.__name__]["properties"]["source"] = {**source, "anyOf": [*source["anyOf"], A_NAME]}
    parts[SourceForm.__name__]["properties"]["use"] = A_NAME
    pipeline = _plain(parts.pop(PipelineForm.__name__))
    return {
        "$schema": DIALECT,
        "title": "A pipeline of Stagehold",
        **pipeline,
        "required": ["pipeline", "stages"],
        "$defs": {name: _plain(part) for name, part in sorted(parts.items())} | {"Variable": VARIABLE},
    }


def schema_text() -> str:
    return f"{json.dumps(pipeline_schema(), indent=1, sort_keys=True)}\n"


def _tell(form: type[SpecPart], part: dict[str, Any]) -> None:
    """Give each field its text; names are those of the file."""
    properties = {OTHER_NAMES.get((form, name), name): each for name, each in part["properties"].items()}
    part["properties"] = properties
    for name, _, default, text, example in fields_of(form):
        said = f"{text} Default: {default}." if default else text
        properties[name] = {**properties[name], "description": f"{said}\n\nExample: {example}"}
    part.pop("description", None)
    part["required"] = [OTHER_NAMES.get((form, name), name) for name in part.get("required", ())]


def _take_bare_words(parts: Mapping[str, Any], path: tuple[str, ...], field: str) -> None:
    """A word in place of a mapping stands for that one of its fields."""
    holder, form = OF_BARE_WORDS[path]
    named = parts[holder.__name__]["properties"][path[-1]]
    word = {key: value for key, value in parts[form.__name__]["properties"][field].items() if key != "description"}
    named["additionalProperties"] = {"anyOf": [named["additionalProperties"], word]}


def _take_lists(parts: Mapping[str, Any]) -> None:
    """What the loader reads by itself: rules of failures, and notifiers, of which one needs no list."""
    parts[FailureClass.__name__]["enum"].remove(FailureClass.PARTITION_DATA_MISSING)
    properties = parts[PipelineForm.__name__]["properties"]
    properties["failures"] |= {"type": "array", "items": {"$ref": f"#/$defs/{FailureDeclaration.__name__}"}}
    notifier = {"$ref": f"#/$defs/{NotifierDeclaration.__name__}"}
    for hook in Hook:
        properties[hook.value] |= {"anyOf": [notifier, {"type": "array", "items": notifier}]}


def _plain(part: Any) -> Any:
    """The part without what pydantic adds for itself. A property may be called like that."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    return dict(_without_own(part))


def _or_variable(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """A variable may stand for any value of a field, whatever its type."""
    if name in AS_THEY_STAND:
        return schema
    told = {"description": schema["description"]} if "description" in schema else {}
    own = {key: value for key, value in schema.items() if key not in told}
    return {**told, "anyOf": [own, {"$ref": "#/$defs/Variable"}]} if own else schema


def _without_own(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        if name == "properties":
            yield name, {each: _or_variable(_plain(schema), each) for each, schema in value.items()}
        elif name not in MADE_BY_PYDANTIC:
            yield name, _plain(value)
