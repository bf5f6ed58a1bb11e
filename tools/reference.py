"""Makes the pages of docs/reference/ from the code: pipeline fields, settings, commands and the web API; and the JSON
Schema of a pipeline file.

`make docs` calls it. The page of the API imports Airflow, so tests that cannot do that ask for the others alone.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from stagehold.cli.main import app
from stagehold.settings import PREFIX, Settings
from stagehold.spec.pipeline_schema import FILE as SCHEMA
from stagehold.spec.pipeline_schema import schema_text
from stagehold.spec.reference import reference as pipeline_page

MADE = "Made from the code by `make docs`; do not edit it."
DEFAULT = re.compile(r" Default: (?P<default>.+)\.$")


def table(*rows: tuple[str, ...]) -> str:
    """The first row is the head."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join((lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]))


def one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def settings_page() -> str:
    about = (
        f"{MADE} Each setting is an environment variable, and none has to be set.\nRelative folders, files and SQLite "
        "ledgers begin at the project's folder; `STAGEHOLD_PROJECT` and paths on a command\nline begin at the current "
        "folder. Where a default says `HOME`, the value of `STAGEHOLD_HOME` is meant."
    )
    head = ("Variable", "Default", "Meaning")
    return f"# Settings\n\n{about}\n\n{table(head, *_settings())}\n"


def _settings() -> Iterator[tuple[str, str, str]]:
    (body,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(body, ast.ClassDef)
    for field, text in pairwise(body.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                meaning = one_line(said)
                told = DEFAULT.search(meaning)
                value = getattr(Settings, name)
                default = told["default"] if told else f"`{str(value).lower() if value is False else value}`"
                yield f"`{PREFIX}{name.upper()}`", default, DEFAULT.sub("", meaning)


def commands_page() -> str:
    about = (
        f"{MADE} `stagehold COMMAND --help` says the same in a terminal.\nMost commands take `--json` and then print "
        "one JSON document. A command ends with 0 if it did what it was asked, with 1\nif not, and with 2 if it was "
        "called in a way that it does not know."
    )
    group = typer.main.get_command(app)
    commands = "\n".join(_command(group, "stagehold", None))
    return f"# Commands\n\n{about}\n\n{commands}\n"


def _command(command: Any, name: str, parent: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent)
    if parent is not None:
        yield f"## {context.command_path}\n\n{_paragraphs(command.help or '')}\n"
        yield f"```text\n{_usage(command, context)}\n```\n"
    records = [record for part in command.params if (record := part.get_help_record(context))]
    if records:
        rows = [(f"`{spelled}`", one_line(text).replace("  [", " [")) for spelled, text in records]
        yield f"{table(('Argument or option', 'Meaning'), *rows)}\n"
    for below, child in getattr(command, "commands", {}).items():
        yield from _command(child, below, context)


def _usage(command: Any, context: Any) -> str:
    return " ".join((context.command_path, *command.collect_usage_pieces(context)))


def _paragraphs(text: str) -> str:
    return "\n\n".join(one_line(part) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)))


def api_page(document: Mapping[str, Any]) -> str:
    about = (
        f"{MADE} The addresses are below the path `/stagehold` of Airflow's\napi-server, and Airflow's own tokens and "
        "rights count. `GET /stagehold/api/openapi.json` is the same as an OpenAPI\ndocument. What is refused is "
        "answered with `application/problem+json`."
    )
    routes = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    contents = table(
        ("Route", "What it does"),
        *((f"`{method} {path}`", _first_sentence(operation)) for method, path, operation in routes),
    )
    sections = "\n".join(_route(*route) for route in routes)
    shapes = "\n".join(_shape(name, schema) for name, schema in document["components"]["schemas"].items())
    return f"# Web API\n\n{about}\n\n{contents}\n\n{sections}\n## Shapes\n\n{shapes}"


def _first_sentence(operation: Mapping[str, Any]) -> str:
    text = one_line(operation.get("description") or operation["summary"])
    return re.split(r"(?<=[.])\s", text)[0].removesuffix(".")


def _route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [f"## {method} {path}\n", _paragraphs(operation.get("description") or f"{operation['summary']}.") + "\n"]
    asked = [
        (f"`{one['name']}`", f"in the {one['in']}", _type(one["schema"]), _needed(one.get("required", False)))
        for one in operation.get("parameters", ())
    ]
    if asked:
        parts.append(f"{table(('Parameter', 'Where', 'Type', 'Needed'), *asked)}\n")
    if body := operation.get("requestBody"):
        parts.append(f"Takes {_content(body)}.\n")
    answers = [
        f"{status}: {_content(answer)}" for status, answer in operation["responses"].items() if status != "default"
    ]
    parts.append(f"Answers {'; '.join(answers)}.\n")
    return "\n".join(parts)


def _content(holder: Mapping[str, Any]) -> str:
    kinds = holder.get("content", {})
    shapes = dict.fromkeys(_type(kind["schema"]) for kind in kinds.values() if kind.get("schema"))
    return " or ".join(shapes) or "nothing"


def _shape(name: str, schema: Mapping[str, Any]) -> str:
    parts = [f"### {name}\n"]
    if schema.get("description"):
        parts.append(_paragraphs(schema["description"]) + "\n")
    if "enum" in schema:
        parts.append(f"One of {', '.join(f'`{word}`' for word in schema['enum'])}.\n")
    needed = schema.get("required", ())
    rows = [(f"`{key}`", _type(one), _needed(key in needed)) for key, one in schema.get("properties", {}).items()]
    if rows:
        parts.append(f"{table(('Field', 'Type', 'Always there'), *rows)}\n")
    return "\n".join(parts)


def _needed(needed: bool) -> str:
    return "yes" if needed else "no"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words, with links to shapes that have a heading of their own."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("type", "anything"))
    if kind == "array" and "prefixItems" in schema:
        return f"list of {', '.join(_type(one) for one in schema['prefixItems'])}"
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"mapping to {_type(schema['additionalProperties'])}"
    return str(schema.get("format", kind))


def openapi_document() -> dict[str, Any]:
    from stagehold.airflow.api import create_api

    return create_api().openapi()


def main(folder: Path) -> None:
    pages = {"pipeline": pipeline_page(), "settings": settings_page(), "commands": commands_page()}
    with tempfile.TemporaryDirectory() as home:
        os.environ["AIRFLOW_HOME"] = home  # Airflow reads it when it is imported, and would make one in the user's home
        pages["api"] = api_page(openapi_document())
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    for schema in (SCHEMA, folder / SCHEMA.name):  # in the package, and beside the pages
        schema.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
