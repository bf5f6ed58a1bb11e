"""`stagehold.yaml` of a project: what holds for all its pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from stagehold.errors import InvalidSpec, SpecProblem

NAME = "stagehold.yaml"
VARS = "vars"
TARGETS = "targets"
FIELDS = (VARS, TARGETS)


@dataclass(frozen=True)
class ProjectFile:
    """What the file says: ``vars`` of its pipelines, which stand below those of a pipeline, and ``targets``, each with
    settings by their names and with `vars` of its own, which stand above.
    """

    vars: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def vars_of(self, target: str) -> Mapping[str, Any]:
        return self.targets.get(target, {}).get(VARS) or {}

    def settings_of(self, target: str) -> Mapping[str, str]:
        """The settings of a target as an environment would have them."""
        given = self.targets[target]
        return {name: plain_text(value) for name, value in given.items() if name != VARS}


def project_file(project: Path) -> Path:
    return project / NAME


def read_project_file(project: Path, settings: tuple[str, ...] | None = None) -> ProjectFile:
    """What the project's file says; nothing, if there is none.

    :param settings: what a target may have; who does not know it leaves that unchecked.
    :raises InvalidSpec: listing every problem of the file with its line
    """
    path = project_file(project)
    if not path.is_file():
        return ProjectFile()
    reader = _Reader(path, settings)
    found = ProjectFile(vars=reader.data.get(VARS) or {}, targets=reader.data.get(TARGETS) or {})
    if reader.problems:
        raise InvalidSpec(str(path), sorted(reader.problems, key=lambda problem: problem.line))
    return found


class _Reader:
    """The file as data, and what is wrong with it. PyYAML is imported only where there is such a file."""

    def __init__(self, path: Path, settings: tuple[str, ...] | None) -> None:
        import yaml

        self.settings = settings
        self.problems: list[SpecProblem] = []
        self.data: Mapping[str, Any] = {}
        self.lines: dict[tuple[str, ...], int] = {}
        try:
            loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
            root = loader.get_single_node()
            self.data = loader.construct_document(root) or {} if root else {}
        except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            said = getattr(error, "problem", None) or str(error).splitlines()[0]
            return self._refuse(mark.line + 1 if mark else 1, "file", said, "YAML in UTF-8")
        if root is not None:
            self._place(root, ())
            self._check()

    def _place(self, node: Any, path: tuple[str, ...]) -> None:
        self.lines[path] = node.start_mark.line + 1
        for key, value in node.value if node.id == "mapping" else ():
            self._place(value, (*path, str(key.value)))
            self.lines[(*path, str(key.value))] = key.start_mark.line + 1

    def _check(self) -> None:
        for path, given, allowed in self._mistakes():
            self._refuse(self.lines.get(path, 1), ".".join(path) or "file", given, allowed)
        if self.problems:
            self.data = {}

    def _mistakes(self) -> Iterator[tuple[tuple[str, ...], str, str]]:
        if not isinstance(self.data, dict):
            yield (), type(self.data).__name__, "a mapping of fields"
            return
        for name in self.data:
            if name not in FIELDS:
                yield (str(name),), repr(name), named_of(str(name), FIELDS)
        if not isinstance(self.data.get(VARS) or {}, dict):
            yield (VARS,), repr(self.data[VARS]), "a mapping of names to values"
        targets = self.data.get(TARGETS) or {}
        if not isinstance(targets, dict) or not all(isinstance(each, dict) for each in targets.values()):
            yield (TARGETS,), repr(targets), "a mapping of names to mappings of settings"
            return
        for target, fields in targets.items():
            yield from self._mistakes_of_target(str(target), fields)

    def _mistakes_of_target(self, target: str, fields: Mapping[Any, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
        for name, value in fields.items():
            place = (TARGETS, target, str(name))
            if name == VARS and not isinstance(value, dict):
                yield place, repr(value), "a mapping of names to values"
            elif name != VARS and self.settings is not None and name not in self.settings:
                yield place, repr(name), named_of(str(name), (*self.settings, VARS))
            elif name != VARS and not isinstance(value, str | int | bool):
                yield place, repr(value), "text, a whole number, true or false"

    def _refuse(self, line: int, field: str, given: str, allowed: str) -> None:
        self.problems.append(SpecProblem(line, field, given, allowed))


def plain_text(value: object) -> str:
    """The value of a variable as the file says it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def named_of(given: str, known: tuple[str, ...]) -> str:
    """The known names as a text, with the one that was probably meant."""
    near = get_close_matches(given, known, n=1)
    return f"{', '.join(known) or 'none'}{f' (did you mean {near[0]}?)' if near else ''}"
