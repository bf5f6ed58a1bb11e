"""Cut the schema of the values of Airflow's Helm chart down to what `deploy/helm-values.yaml` names, and names beside.

    python tools/chart_schema.py CHART/values.schema.json VERSION > tests/airflow_chart.schema.json

The chart's own schema lets most names through that it does not know, and its templates read past them. Here none is
let through but those that it has, and none that it calls deprecated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stagehold.settings import PROJECT

VALUES = PROJECT / "deploy" / "helm-values.yaml"
KEPT = ("type", "enum", "const", "pattern", "minimum", "maximum", "minItems", "maxItems", "required")
Schema = Mapping[str, Any]


def cut(schema: Schema, value: Any, whole: Schema) -> dict[str, Any]:
    """What a schema says of one value and of what is in it."""
    schema = _followed(schema, whole)
    kept = {name: schema[name] for name in KEPT if name in schema}
    if isinstance(value, Mapping):
        kept |= _cut_fields(schema, value, whole)
    if isinstance(value, list) and "items" in schema:
        kept["items"] = _cut_items(schema["items"], value, whole)
    return kept


def _cut_fields(schema: Schema, value: Mapping[str, Any], whole: Schema) -> dict[str, Any]:
    known = {name: one for name, one in schema.get("properties", {}).items() if not _is_deprecated(one, whole)}
    others = schema.get("additionalProperties", not known)
    fields = {name: cut(one, value[name], whole) if name in value else {} for name, one in known.items()}
    if isinstance(others, Mapping):
        others = cut(others, next((each for name, each in value.items() if name not in known), None), whole)
    return {"properties": fields, "additionalProperties": others if others is not True or not known else False}


def _cut_items(items: Schema, value: list[Any], whole: Schema) -> dict[str, Any]:
    """Of all together, where they are mappings: each has some of the fields."""
    named = {name: each for item in value if isinstance(item, Mapping) for name, each in item.items()}
    return cut(items, named or next(iter(value), None), whole)


def _followed(schema: Schema, whole: Schema) -> Schema:
    while reference := schema.get("$ref"):
        there: Any = whole
        for name in reference.removeprefix("#/").split("/"):
            there = there[name]
        schema = {**there, **{name: one for name, one in schema.items() if name != "$ref"}}
    return schema


def _is_deprecated(schema: Schema, whole: Schema) -> bool:
    return "(deprecated" in _followed(schema, whole).get("description", "").lower()


def main(place: str, version: str) -> None:
    whole = json.loads(Path(place).read_text())
    said = f"Cut by tools/chart_schema.py from values.schema.json of Airflow's Helm chart {version}, Apache-2.0."
    schema = {"$schema": whole["$schema"], "$comment": said, **cut(whole, yaml.safe_load(VALUES.read_text()), whole)}
    print(json.dumps(schema, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
