"""Variables of a file: `${vars.NAME}` and `${env.NAME}` are put in before anything of it is checked, so that keys and
plans know just what comes of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stagehold.project_file import plain_text
from stagehold.spec.form import AS_THEY_STAND, show, suggest
from stagehold.spec.yaml import Document, FieldPath, Problem

VARIABLE = re.compile(r"\$\{(vars|env)\.([^}]*)\}")
VARS, ENV = "vars", "env"
IN_TEXT = (str, int, float, bool)


@dataclass(frozen=True)
class Resolved:
    """A document without variables, and the values that were put in, by names such as `vars.country`. ``known`` are
    all that there were. ``environment`` has what the process said to each variable that the file declares.
    """

    document: Document
    values: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_current(self) -> bool:
        return all(os.environ.get(name) == value for name, value in self.environment.items())


def resolved(document: Document, usual: Mapping[str, Any], over: Mapping[str, Any]) -> Resolved:
    """Put the variables of a file in. A field whose variable is unknown is left empty, and a problem of it.

    :param usual: variables of the project, which count less than the file's own.
    :param over: variables of the target, which count more.
    """
    declared = _environment(document.data.get(ENV))
    given = {name: os.environ.get(name) for name in declared}
    known = {f"{ENV}.{name}": declared[name] if given[name] is None else given[name] for name in declared}
    work = _Putting(known)
    own = document.data.get(VARS)
    values = work.put({**usual, **(own if isinstance(own, Mapping) else {}), **over}, (VARS,))
    work.known.update({f"{VARS}.{name}": value for name, value in values.items()})
    kept = {name: document.data[name] for name in AS_THEY_STAND if name in document.data}
    data = {name: work.put(value, (name,)) for name, value in document.data.items() if name not in kept}
    found = replace(document, data={**data, **kept}, problems=(*document.problems, *work.problems))
    return Resolved(found, work.used, work.known, given)


def put_in(document: Document, known: Mapping[str, Any]) -> Document:
    """A document that belongs to a pipeline, as a suite does, with the variables that the pipeline knows."""
    work = _Putting(dict(known))
    data = work.put(document.data, ())
    return replace(document, data=data, problems=(*document.problems, *work.problems))


def variables_in(text: str) -> frozenset[str]:
    """The names of the variables in a text, such as `vars.country`."""
    return frozenset(f"{kind}.{name}" for kind, name in VARIABLE.findall(text))


def _environment(given: object) -> Mapping[str, str | None]:
    """The variables that a file declares, with their defaults."""
    if isinstance(given, Mapping):
        return {str(name): None if value is None else plain_text(value) for name, value in given.items()}
    names = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else ()
    return {str(name): None for name in names}


class _Putting:
    """Puts what is known in place of its names, and collects what was used and what is wrong."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known
        self.used: dict[str, Any] = {}
        self.problems: list[Problem] = []

    def put(self, given: Any, path: FieldPath) -> Any:
        if isinstance(given, Mapping):
            return {name: self.put(value, (*path, str(name))) for name, value in given.items()}
        if isinstance(given, list | tuple):
            return [self.put(value, (*path, str(number))) for number, value in enumerate(given)]
        if not isinstance(given, str) or "${" not in given:
            return given
        if whole := VARIABLE.fullmatch(given):
            return self._value(whole, path)
        before = len(self.problems)
        text = VARIABLE.sub(lambda found: self._in_text(found, path), given)
        return text if len(self.problems) == before else None

    def _value(self, found: re.Match[str], path: FieldPath) -> Any:
        """What a variable stands for, of whatever type; None if that is a problem."""
        kind, name = found.groups()
        written = f"{kind}.{name}"
        if written not in self.known:
            names = tuple(known.partition(".")[2] for known in self.known if known.startswith(f"{kind}."))
            self.problems.append(Problem(path, found[0], _instead(kind, name, names)))
        elif self.known[written] is None and kind == ENV:
            allowed = f"a variable that the environment has, or a default: `env: {{{name}: VALUE}}`"
            self.problems.append(Problem(path, f"{found[0]}, which is not set", allowed))
        else:
            self.used[written] = self.known[written]
            return self.known[written]
        return None

    def _in_text(self, found: re.Match[str], path: FieldPath) -> str:
        before = len(self.problems)
        value = self._value(found, path)
        if len(self.problems) == before and not isinstance(value, IN_TEXT):
            allowed = "text, a number, true or false within a text; a list or mapping alone"
            self.problems.append(Problem(path, f"{found[0]}, which is {show(value)}", allowed))
        return plain_text(value)


def _instead(kind: str, name: str, names: tuple[str, ...]) -> str:
    if kind == ENV:
        return f"a variable that `env` of the pipeline declares: {suggest(name, names)}"
    return f"a variable of `vars`, here or in stagehold.yaml: {suggest(name, names)}"
