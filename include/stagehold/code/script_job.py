"""A job that is a whole script, `jobs/old_job.py`, which runs as `spark-submit` runs it.

For whoever reads code it is a module of Python whose one function is the script, with the file's own lines. Modules
that lie beside it, which `spark-submit` finds by their names alone, are called there as the project calls them.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeGuard

from stagehold.code.unchanging_files import content_of
from stagehold.errors import InvalidInterval
from stagehold.model.context import StageContext
from stagehold.model.keys.interval_text import VARIABLE as INTERVAL
from stagehold.model.keys.interval_text import IntervalTimes, IntervalUnfit, of_interval

SUFFIX = ".py"
FUNCTION = "script"
SRC = "src"  # the folder of a project that its modules may lie in, too
HERE = "./"  # the project's own folder
PARAMS, INPUTS = "params.", "inputs."
OUTPUT, SOURCE = "output", "source"
VARIABLE = re.compile(r"\$\{(?P<name>[^{}]*)\}")
WITH_TIMES = "a date such as 2026-11-20, or a moment of the pipeline's schedule"


def job_of_script(script: str) -> str:
    """A script's file as a job. It has a slash in its name, which no module of Python has."""
    return f"{script if '/' in script else f'{HERE}{script}'}:{FUNCTION}"


def is_script(module: str) -> bool:
    return module.endswith(SUFFIX) and "/" in module


def imported_as(file: PurePath) -> PurePath:
    """A file of the project, by its path, as seen from the folder that it is imported from."""
    return file.relative_to(SRC) if SRC in file.parts[:1] and len(file.parts) > 1 else file


def variables_of(argument: str) -> Iterator[str]:
    """What stands in `${...}`, other than an interval."""
    return (found["name"] for found in VARIABLE.finditer(argument) if not INTERVAL.fullmatch(found[0]))


def filled(argument: str, context: StageContext, paths: Mapping[str, str]) -> str:
    """An argument of a script, for the interval and parameters of the context.

    :raises InvalidInterval: it asks for a time that the interval has not
    """
    values: dict[str, Any] = {**{f"{PARAMS}{name}": value for name, value in context.params.items()}, **paths}
    times = IntervalTimes(context.interval, context.interval_start, context.interval_end)
    try:
        timed = of_interval(argument, times)
    except IntervalUnfit as error:
        raise InvalidInterval(context.interval, f"is asked for in {argument!r}, but {error}", WITH_TIMES) from error
    return VARIABLE.sub(lambda found: _text(values[found["name"]]), timed)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def script_tree(path: Path, module: str) -> ast.Module:
    """The script as it is run.

    :raises SyntaxError: the file is no Python
    """
    tree = ast.parse(content_of(path), str(path))
    package = ".".join(imported_as(Path(module)).parent.parts)
    return ast.fix_missing_locations(_Beside(path.parent, package).visit(tree)) if package else tree


def function_of(tree: ast.Module) -> ast.Module:
    """The module whose one function is a script; its star imports stand before that, as they may in no function."""
    wrapped = ast.parse(f"from stagehold import stage\n@stage\ndef {FUNCTION}(ctx, **frames): pass")
    function = wrapped.body[-1]
    assert isinstance(function, ast.FunctionDef)
    for node in ast.walk(wrapped):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = 1
    function.end_lineno = max((statement.end_lineno or 1 for statement in tree.body), default=1)
    stars = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and is_star(node)]
    within = ast.fix_missing_locations(_WithinFunction().visit(tree))
    function.body = within.body or function.body
    wrapped.body[:0] = stars
    return wrapped


def is_star(statement: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"


class _WithinFunction(ast.NodeTransformer):
    """Takes out what may stand only at the top of a file."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if is_star(node) or node.module == "__future__" else node


class _Beside(ast.NodeTransformer):
    """``package`` is what the project calls the folder."""

    def __init__(self, folder: Path, package: str) -> None:
        self._folder, self._package = folder, package

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [ast.copy_location(made, node) for alias in node.names for made in self._imports(alias)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if not node.level and self._is_beside(node.module or ""):
            node.module = f"{self._package}.{node.module}"
        return node

    def _imports(self, alias: ast.alias) -> Iterator[ast.Import]:
        first = alias.name.partition(".")[0]
        if not self._is_beside(alias.name):
            yield ast.Import([alias])
            return
        if alias.asname is None:
            yield ast.Import([ast.alias(f"{self._package}.{first}", first)])
        if alias.asname is not None or first != alias.name:
            yield ast.Import([ast.alias(f"{self._package}.{alias.name}", alias.asname)])

    def _is_beside(self, name: str) -> bool:
        place = self._folder / name.partition(".")[0]
        known = not name or place.name in sys.stdlib_module_names
        return not known and (place.with_suffix(SUFFIX).is_file() or any(place.glob("*.py")))
