"""What would stop a stage's code as soon as its module is imported, found by reading it.

Looked at are the modules that importing the job loads, and imports at the top of functions that the stage reaches. An
import inside ``if`` or ``try`` may be meant to fail, so it is left alone, and so is whatever the text does not decide.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from stagehold.code.bindings import Imported, absolute_name, bind, imports_of, is_project, with_parents
from stagehold.code.project import Function, Module, find_module, load_module
from stagehold.code.script_job import imported_as, is_star
from stagehold.code.stage_code import reached_code
from stagehold.code.unchanging_files import found_once

UNDECIDED = frozenset({"globals", "exec", "setattr", "vars", "locals"})  # may bind names that the text does not show


_CALLED = (
    "; {place} is there, which is called {name} in the project; write that, or move what is in {folder}/ into the "
    "project's folder"
)


def code_problems(job: str, project: Path) -> tuple[str, ...]:
    """Everything that is sure to fail, in the order in which it is met, each as `file:line: what`."""
    first, *others = job.splitlines()
    name, _, function = first.partition(":")
    reading = _Reading(project)
    reading.check_stage(name, function)
    for other in others:
        reading.load(other.partition(":")[0])
    for module, statement in reached_code(job, project):
        if isinstance(statement, Function):
            reading.check_imports(module, statement.body)
    return tuple(dict.fromkeys(reading.problems))


class _Reading:
    """The modules read so far, and what is wrong with them."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.problems: list[str] = []
        self._loaded: dict[str, Module | None] = {}

    def load(self, name: str) -> Module | None:
        """A module of the project with all that importing it imports;
        None if there is none, or none that Python can read.
        """
        if name not in self._loaded:
            self._loaded[name] = None  # modules may import each other
            self._loaded[name] = self._parsed(name)
            module = self._loaded[name]
            if module is not None:
                self.check_imports(module, module.tree.body)
        return self._loaded[name]

    def check_imports(self, module: Module, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for imported in _imports(statement, module):
                    self._check(module, statement.lineno, imported)

    def check_stage(self, name: str, function: str) -> None:
        """The job itself, with all that importing it loads. A function that nothing decorates is surely no stage."""
        for loaded in with_parents(name):
            self.load(loaded)
        module = self.load(name)
        found = (
            [node for node in module.tree.body if isinstance(node, Function) and node.name == function]
            if module
            else []
        )
        if module is None or len(found) != 1:
            return
        self.check_imports(module, found[0].body)
        if not found[0].decorator_list and not _rebinds(module, function):
            self._tell(module, found[0].lineno, f"{function} is no stage function; put @stage on it")

    def _parsed(self, name: str) -> Module | None:
        try:
            return load_module(name, self.project)
        except SyntaxError as error:
            unread = Module(name, Path(error.filename or name), ast.Module([], []))
            self._tell(unread, error.lineno or 1, f"Python cannot read it: {error.msg}")
        except (ValueError, OSError):
            return None  # another reader may be able to
        return None

    def _check(self, module: Module, line: int, imported: Imported) -> None:
        top = imported.module.partition(".")[0]
        if not is_project(top, self.project):
            if not _is_installed(top):
                self._tell(
                    module, line, f"imports {imported.module}, which is not installed{self._nearby(module, top)}"
                )
            return
        for name in imported.loads:
            if find_module(name, self.project) is None:
                if _is_of_project(top, self.project):
                    self._tell(module, line, f"imports {imported.module}, and there is no {name.replace('.', '/')}.py")
                return
            self.load(name)
        self._check_member(module, line, imported)

    def _nearby(self, module: Module, top: str) -> str:
        """Where it is in a folder above the module's, which `spark-submit` would look in, and the project does not."""
        for folder in module.path.parents:
            if folder == self.project or not folder.is_relative_to(self.project):
                break
            for place in (folder / f"{top}.py", folder / top):
                if place.is_file() or any(place.glob("*.py")):
                    return _CALLED.format(
                        place=place.relative_to(self.project).as_posix(),
                        folder=folder.relative_to(self.project).as_posix(),
                        name=".".join(imported_as(place.relative_to(self.project)).with_suffix("").parts),
                    )
        return ""

    def _check_member(self, module: Module, line: int, imported: Imported) -> None:
        name = imported.name
        if name is None:
            return
        if find_module(f"{imported.module}.{name}", self.project) is not None:
            self.load(f"{imported.module}.{name}")
            return
        source = self._loaded.get(imported.module)
        if source is not None and not _may_have(source, name, self.project):
            self._tell(module, line, f"imports {name} from {imported.module}, which has no {name}")

    def _tell(self, module: Module, line: int, what: str) -> None:
        path = module.path
        file = path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)
        self.problems.append(f"{file}:{line}: {what}")


def _imports(statement: ast.Import | ast.ImportFrom, module: Module) -> Iterator[Imported]:
    if is_star(statement):
        source = absolute_name(statement, module)
        yield Imported(source, None, with_parents(source))
        return
    for imports in imports_of([statement], module).values():
        yield from imports


def _is_installed(top: str) -> bool:
    """Asks where the module is, without running it."""
    return found_once(("installed", top), lambda: _is_found(top))


def _is_found(top: str) -> bool:
    if top in sys.modules or top in sys.stdlib_module_names:
        return True
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):
        return True


def _is_of_project(top: str, project: Path) -> bool:
    """Whether all of a name is the project's.
    A folder without `__init__.py` may be one part of an installed package.
    """
    found = find_module(top, project)
    if found is not None and found.is_file():
        return True
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return all(place is None or Path(place).is_relative_to(project) for place in places)


def _may_have(source: Module, name: str, project: Path) -> bool:
    if found_once(("undecided", str(source.path)), lambda: _is_undecided(source.tree)):
        return True
    bindings = bind(source, project)
    return bool(bindings.stars) or name in bindings or "__getattr__" in bindings or name.startswith("__")


def _is_undecided(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Global | ast.Match) or (isinstance(node, ast.Name) and node.id in UNDECIDED)
        for node in ast.walk(tree)
    )


def _rebinds(module: Module, name: str) -> bool:
    """Whether anything but its definition binds the name, as in ``orders = stage(orders)``."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(module.tree)
    )
