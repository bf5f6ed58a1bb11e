"""Whether every ``${NAME}`` of a declaration is one that is resolved. There is no way to write one that is meant as
it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stagehold.spec.draft import Draft
from stagehold.spec.settings.source import SourceKind
from stagehold.spec.yaml import FieldPath, Problem

LAKE = "${lake}"
VARIABLE = re.compile(r"\$\{[^}]*\}?")
NAME = re.compile(r"[A-Za-z_]\w*")
LONGEST = 80  # of what is shown where no brace ends it
ALSO_LAKE = f"{LAKE} is the only variable"
ELSEWHERE = (
    f"no variable: only {LAKE} is resolved, in `path` and `splits` of a source and in `files` and `tables` of `reads`"
)
OF_A_DATABASE = "no variable; user_variable and password_variable name environment variables"


def check_variables(draft: Draft) -> Iterator[Problem]:
    """Texts are taken as they stand. What looks as if it were replaced and is not would end up in data."""
    yield from dict.fromkeys(_problems(draft.data, (), draft))


def _problems(given: Any, path: FieldPath, draft: Draft) -> Iterator[Problem]:
    if isinstance(given, str):
        with_lake = _resolves_lake(path, draft)
        for found in VARIABLE.findall(given):
            if not (with_lake and found == LAKE):
                yield Problem(path, found[:LONGEST], ALSO_LAKE if with_lake else _allowed(path, found, draft))
    elif isinstance(given, Mapping):
        for name, value in given.items():
            for found in VARIABLE.findall(str(name)):
                yield Problem((*path, str(name)), found[:LONGEST], "no variable in a name")
            yield from _problems(value, (*path, str(name)), draft)
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given):
            yield from _problems(value, (*path, str(number)), draft)


def _resolves_lake(path: FieldPath, draft: Draft) -> bool:
    match path:
        case ("stages", _, "source", "path" | "splits", *_):
            return not _reads_a_database(path, draft)
        case ("stages", _, "reads", "files" | "tables", *_):
            return True
    return False


def _reads_a_database(path: FieldPath, draft: Draft) -> bool:
    """Whether the field is of such a source; its conditions are no paths."""
    stage = draft.stages.get(path[1])
    return stage is not None and stage.source is not None and stage.source.kind is SourceKind.JDBC


def _allowed(path: FieldPath, found: str, draft: Draft) -> str:
    match path:
        case ("params", *_) | ("stages", _, "params", *_):
            named = NAME.match(found.removeprefix("${"))
            name = named[0] if named else "NAME"
            return (
                f"no variable: a parameter is taken as it stands. Declare `reads: {{env: [{name}]}}` for the stage and "
                f'read os.environ["{name}"] in its function, or give a parameter of the pipeline with `--param`'
            )
        case ("stages", _, "source", *_) if _reads_a_database(path, draft):
            return OF_A_DATABASE
    return ELSEWHERE
