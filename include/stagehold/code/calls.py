"""Where a stage's code calls a function by name, so that what a plan shows without lines can be pointed at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stagehold.code.project import Module
from stagehold.code.stage_code import reached_code

SILENT = "# stagehold: deterministic"
IN_SQL = re.compile(r"\b([a-z_]\w*)\s*\(|\b(limit)\s+\d|\b((?:current|local)\w*)\b", re.IGNORECASE)


@dataclass(frozen=True)
class CodeCall:
    """One call; ``silenced`` says that its line ends with the comment by which an author answers for it."""

    name: str
    file: str
    line: int
    text: str
    silenced: bool

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def calls_of(job: str, project: Path) -> tuple[CodeCall, ...]:
    """Every call in the project's code that ``module:function`` reaches, those in texts of SQL included,
    by file and line.
    """
    found = {call for module, statement in reached_code(job, project) for call in _calls(statement, module, project)}
    return tuple(sorted(found, key=lambda call: (call.file, call.line, call.name)))


def _calls(statement: ast.stmt, module: Module, project: Path) -> Iterator[CodeCall]:
    file = module.path.relative_to(project).as_posix()
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            for name, first in _names(node):
                lines = lines_of(module.path)[first - 1 : max(first, node.end_lineno or first)]
                yield CodeCall(name, file, first, lines[0].strip(), any(SILENT in line for line in lines))


def _names(call: ast.Call) -> Iterator[tuple[str, int]]:
    """Names with their lines: in a chain of methods each has its own."""
    if isinstance(call.func, ast.Attribute):
        yield call.func.attr, call.func.end_lineno or call.lineno
    elif isinstance(call.func, ast.Name):
        yield call.func.id, call.lineno
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            for match in IN_SQL.finditer(argument.value):
                name = next(group for group in match.groups() if group)
                yield name.lower(), argument.lineno + argument.value[: match.start()].count("\n")


def lines_of(path: Path) -> Sequence[str]:
    return _lines(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _lines(path: Path, changed: int) -> Sequence[str]:  # noqa: ARG001
    return path.read_text(encoding="utf-8").splitlines()
