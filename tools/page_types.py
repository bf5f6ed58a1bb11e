"""Writes what the web API takes and answers as TypeScript types, against which the pages are checked: `make docs`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "include" / "stagehold" / "web" / "types" / "stagehold_api.d.ts"
HEAD = "// Written by `make docs` from the OpenAPI document of Stagehold's web API.\n\ndeclare namespace Api {\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
WIDTH = 120

Schema = dict[str, Any]


def typescript(document: Schema) -> str:
    """The text of the file: a type for each schema of an OpenAPI document, in the order of their names."""
    schemas = document["components"]["schemas"]
    taken = {name for path in document["paths"].values() for name in _taken_by(path)}
    types = (_declaration(name, schemas[name], optional=name in taken) for name in sorted(schemas))
    return HEAD + "\n".join(types) + "}\n"


def _taken_by(path: Schema) -> Iterable[str]:
    """Schemas of request bodies: a default may be left out there, while an answer always has all its fields."""
    for operation in path.values():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            yield content["schema"]["$ref"].rsplit("/", 1)[-1]


def _declaration(name: str, schema: Schema, *, optional: bool) -> str:
    if "enum" in schema:
        return _union(f"  type {name} =", [json.dumps(value) for value in schema["enum"]])
    must = schema.get("required", [])
    fields = (
        f"    {field}{'?' if optional and field not in must else ''}: {_type(of)};\n"
        for field, of in schema["properties"].items()
    )
    return f"  interface {name} {{\n{''.join(fields)}  }}\n"


def _union(head: str, words: list[str]) -> str:
    line = f"{head} {' | '.join(words)};\n"
    return line if len(line) <= WIDTH else head + "".join(f"\n    | {word}" for word in words) + ";\n"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        item = _type(schema["items"])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if schema.get("type") == "object":
        return _record(schema)
    return PLAIN.get(schema.get("type", ""), "unknown")


def _record(schema: Schema) -> str:
    """Only some of the words that may be keys are there."""
    names, values = schema.get("propertyNames"), schema.get("additionalProperties")
    value = _type(values) if isinstance(values, dict) else "unknown"
    return f"Partial<Record<{_type(names)}, {value}>>" if names else f"Record<string, {value}>"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["AIRFLOW_HOME"] = home  # Airflow reads it when it is imported, and would make one in the user's home
        from stagehold.airflow.api import create_api

        TARGET.write_text(typescript(create_api().openapi()))


if __name__ == "__main__":
    main()
