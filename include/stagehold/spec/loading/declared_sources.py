"""Sources that a project declares once, each in a file of `include/sources`, and pipelines read by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stagehold.spec.form import show, suggest
from stagehold.spec.yaml import Document, FieldPath, Problem, read_document

FOLDER = Path("include", "sources")
USE = "use"


def source_files(project: Path) -> Mapping[str, Path]:
    """The files by the names of the sources that they declare."""
    return {path.stem: path for path in sorted((project / FOLDER).glob("*.yaml"))}


def with_sources(document: Document, project: Path) -> Document:
    """Put declared sources in place of their names: `source: orders`, or `source: {use: orders, splits: 4}`, whose
    other fields stand over those of the file.
    """
    stages = document.data.get("stages")
    named = dict(_named(stages)) if isinstance(stages, Mapping) else {}
    if not named or not isinstance(stages, Mapping):
        return document
    known, put, problems = source_files(project), dict[FieldPath, Document](), list[Problem]()
    found = dict(stages)
    for stage, (name, own) in named.items():
        path = ("stages", stage, "source")
        if not isinstance(name, str) or name not in known:
            allowed = f"a mapping of fields, or a source of {FOLDER.as_posix()}: {suggest(str(name), tuple(known))}"
            problems.append(Problem(path, show(name), allowed))
            found[stage] = {**found[stage], "source": None}
            continue
        declared = read_document(known[name])
        problems += [replace(problem, path=(*path, *problem.path)) for problem in declared.problems]
        put[path] = replace(declared, data={field: declared.data[field] for field in declared.data if field not in own})
        found[stage] = {**found[stage], "source": {**put[path].data, **own}}
    data = {**document.data, "stages": found}
    return replace(document, data=data, problems=(*document.problems, *problems), parts=put)


def _named(stages: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, Mapping[str, Any]]]]:
    """The source that each stage names, and the fields of its own."""
    for stage, fields in stages.items():
        source = fields.get("source") if isinstance(fields, Mapping) else None
        if isinstance(source, str):
            yield stage, (source, {})
        elif isinstance(source, Mapping) and USE in source:
            yield stage, (source[USE], {field: value for field, value in source.items() if field != USE})
