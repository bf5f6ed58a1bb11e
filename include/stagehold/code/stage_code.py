"""A stage's code as one hash: its function and all code of the project that it can reach, read without importing any.

Counted are functions, classes, constants, decorators and default values by the names that lead to them, through
imports, and whatever importing those modules runs. Not counted: comments, docstrings, formatting, unused code and
installed packages, which count by version elsewhere. What a reader of the text cannot follow gives no hash, with the
reason; such a stage is never reused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagehold.code.bindings import (
    Bindings,
    CannotFollow,
    Chain,
    Imported,
    attributes,
    bind,
    chains_from,
    global_chains,
    imports_of,
    is_project,
    line_of,
    nested_imports,
    text_of,
    with_parents,
)
from stagehold.code.project import Module, find_module, load_module
from stagehold.code.script_job import is_script
from stagehold.code.unchanging_files import found_once, text_in_file
from stagehold.model.keys.compute_key import digest

DYNAMIC_NAMES = frozenset(
    {
        "exec",
        "eval",
        "compile",
        "globals",
        "__import__",
        "__builtins__",
        "__file__",
        "__path__",
        "__loader__",
        "__spec__",
        "__doc__",
    }
)
DYNAMIC_ATTRIBUTES = frozenset({"__globals__", "__subclasses__", "__code__", "__doc__"})
UNREADABLE = (CannotFollow, SyntaxError, ValueError, OSError, RecursionError)
DYNAMIC_IMPORTS = ("importlib", "runpy", "pkgutil", "builtins", "sys.modules", "sys.path", "sys._getframe")
INSTEAD = {
    "__file__": "; relative paths begin at the project's folder, and ctx.file finds the stage's `files`",
    "sys.path": "; the project's modules, and those beside a script, are found without it",
}
# What a context says of its interval.
OF_THE_INTERVAL = frozenset({"interval", "logical_date", "interval_start", "interval_end", "seed"})
LOOKS_AT_EVERYTHING = frozenset({"getattr", "vars", "asdict", "astuple", "__dict__"})
SILENT = "stagehold: deterministic"  # in a comment of Python or SQL
IN_SQL = re.compile(r"\b([a-z_]\w*)\s*\(|\b(limit)\s+\d|\b((?:current|local)\w*)\b", re.IGNORECASE)


@dataclass(frozen=True)
class CodeFingerprint:
    """``value`` is None when the code cannot be followed, then ``reason`` says where.
    ``files`` are project-relative.
    """

    value: str | None
    reason: str | None
    files: tuple[str, ...]


def code_fingerprint(job: str, project: Path) -> CodeFingerprint:
    """Hash what ``module:function`` runs, or several of them, one on a line. An unreadable or missing job has no hash
    either.
    """
    closure = _followed(job, project)
    return CodeFingerprint(None if closure.reason else closure.digest(), closure.reason, closure.files)


def reached_code(job: str, project: Path) -> tuple[tuple[Module, ast.stmt], ...]:
    """The statements that count for ``module:function``, with their modules; as far as the code can be followed."""
    closure = _followed(job, project)
    return tuple((closure.modules[name][0], statement) for name, statement in closure.counted)


def code_parts(job: str, project: Path) -> dict[str, str]:
    """A hash of each part of the project's code that counts for ``module:function``, by its file and name; as far as
    the code can be followed.
    """
    closure = _followed(job, project)
    files = {name: found.path.relative_to(project).as_posix() for name, (found, _) in closure.modules.items()}
    return {f"{files[place[0]]}: {place[1]}": digest(texts) for place, texts in closure.parts.items()}


def _followed(job: str, project: Path) -> _Closure:
    """All that the job reaches, as far as the code can be followed."""
    return found_once(("code", job, str(project)), lambda: _follow(job, project))


def _follow(job: str, project: Path) -> _Closure:
    closure = _Closure(project)
    try:
        for each in job.split("\n"):
            module, _, name = each.partition(":")
            closure.reach_member(module, name, (), each)
        closure.follow_all()
    except UNREADABLE as error:
        closure.reason = str(error)
    return closure


class _Closure:
    """Everything reached so far: parts of code by where they stand,
    and statements whose references are still to follow. If it cannot be followed to its end, ``reason`` says where.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.reason: str | None = None
        self.modules: dict[str, tuple[Module, Bindings]] = {}
        self.parts: dict[tuple[str, str], tuple[str, ...]] = {}
        self.pending: list[tuple[str, ast.stmt]] = []
        self.counted: list[tuple[str, ast.stmt]] = []

    @property
    def files(self) -> tuple[str, ...]:
        paths = (module.path for module, _ in self.modules.values())
        return tuple(sorted(path.relative_to(self.project).as_posix() for path in paths if path.is_file()))

    def digest(self) -> str:
        return digest(text for place, texts in sorted(self.parts.items()) for text in (*place, *texts))

    def follow_all(self) -> None:
        while self.pending:
            self.follow(*self.pending.pop())

    def follow(self, module: str, statement: ast.stmt) -> None:
        """Reach everything that one statement refers to."""
        source, _ = self.load(module)
        for name in sorted(DYNAMIC_ATTRIBUTES & attributes(statement)):
            raise CannotFollow(f"{_place(module, statement, ())} uses {name}")
        for chain in sorted(global_chains(statement)):
            place = _place(module, statement, chain)
            found = self.places(module, chain[0])
            for where in found:
                self.reach_name(where, chain[0], chain[1:], place)
            if not found and chain[0] in DYNAMIC_NAMES:
                raise CannotFollow(f"{place} uses {chain[0]}{INSTEAD.get(chain[0], '')}")
        local = imports_of(nested_imports(statement), source)
        self.load_all(imported for imports in local.values() for imported in imports)
        for chain in sorted(chains_from(statement, frozenset(local))):
            for imported in local[chain[0]]:
                self.reach_import(module, imported, chain[1:], _place(module, statement, chain))

    def load(self, name: str) -> tuple[Module, Bindings]:
        """The module, counting what importing it runs: its own effects and those of what it imports."""
        if name not in self.modules:
            module = load_module(name, self.project)
            if module is None:
                raise CannotFollow(f"{name} is not in the project")
            bindings = bind(module, self.project)
            self.modules[name] = (module, bindings)
            self.count(name, "<import>", bindings.effects)
            self.load_all(imported for imports in bindings.imports.values() for imported in imports)
            self.load_stars(name, bindings)
        return self.modules[name]

    def load_stars(self, module: str, bindings: Bindings) -> None:
        """Load what a module imports by `*`; a package of the project may give modules along with its names."""
        for star in bindings.stars:
            self.load_all([Imported(star, None, with_parents(star))])
            if not is_project(star, self.project):
                self.reach_import(module, Imported(star, "*", ()), (), f"{module}, by a star import,")
            elif "__all__" in self.load(star)[1] and self.load(star)[0].path.name == "__init__.py":
                raise CannotFollow(f"{module} imports * of {star}, whose __all__ may name modules")

    def places(self, module: str, name: str) -> list[str]:
        """The modules that may give a name its meaning in a module: that one, and those of which it imports `*`."""
        return [each for each in self.starred(module) if name in self.load(each)[1]]

    def is_open(self, module: str) -> bool:
        """Whether an installed package may give it a name by a star, which counts by the package's version."""
        stars = (star for each in self.starred(module) for star in self.load(each)[1].stars)
        return not all(is_project(star, self.project) for star in stars)

    def starred(self, module: str) -> list[str]:
        """A module, and the project's modules of which it imports `*`, or these do."""
        found = [module]
        for each in found:
            stars = self.load(each)[1].stars
            found.extend(star for star in stars if star not in found and is_project(star, self.project))
        return found

    def load_all(self, imports: Iterable[Imported]) -> None:
        for imported in imports:
            if is_project(imported.module, self.project):
                for name in imported.loads:
                    self.load(name)

    def reach_module(self, module: str, rest: Chain, place: str) -> None:
        """Follow a dotted name whose beginning is a module; a module by itself could lead anywhere."""
        self.load(module)
        if not rest:
            raise CannotFollow(f"{place} uses the module {module} as a value")
        self.reach_member(module, rest[0], rest[1:], place)

    def reach_member(self, module: str, name: str, rest: Chain, place: str) -> None:
        """Follow ``module.name.rest``."""
        found = self.places(module, name)
        for where in found:
            self.reach_name(where, name, rest, place)
        if found:
            return
        if find_module(f"{module}.{name}", self.project) is not None:
            self.reach_module(f"{module}.{name}", rest, place)
        elif not self.is_open(module):
            raise CannotFollow(f"{place}: {module} does not show what {name} is")

    def reach_name(self, module: str, name: str, rest: Chain, place: str) -> None:
        bindings = self.load(module)[1]
        self.count(module, name, bindings.definitions.get(name, ()))
        for imported in bindings.imports.get(name, ()):
            self.reach_import(module, imported, rest, place)

    def reach_import(self, module: str, imported: Imported, rest: Chain, place: str) -> None:
        """Follow an import; one of an installed package counts by what it names."""
        if not is_project(imported.module, self.project):
            _refuse_dynamic(".".join((str(imported), *rest)), place)
            self.parts[module, f"import {imported}"] = ()
        elif imported.name is None:
            self.reach_module(imported.module, rest, place)
        else:
            self.reach_member(imported.module, imported.name, rest, place)

    def count(self, module: str, name: str, statements: Iterable[ast.stmt]) -> None:
        """Put statements into the hash, once, and remember to follow them."""
        if (module, name) not in self.parts:
            counted = tuple(statements)
            self.parts[module, name] = tuple(map(text_of, counted))
            self.counted.extend((module, statement) for statement in counted)
            self.pending.extend((module, statement) for statement in counted)


def _place(module: str, statement: ast.stmt, chain: Chain) -> str:
    """Where a statement uses a name. A script is one statement, so the line is looked for in it."""
    return f"{module} line {line_of(statement, chain) if is_script(module) else statement.lineno}"


def _refuse_dynamic(target: str, place: str) -> None:
    for name in DYNAMIC_IMPORTS:
        starred = target.endswith(".*") and name.startswith(target[:-1])
        if target == name or target.startswith(f"{name}.") or starred:
            raise CannotFollow(f"{place} uses {name}{INSTEAD.get(name, '')}")


def looks_at_interval(job: str, project: Path) -> bool:
    """Whether a stage's code looks at its interval: then the data of another one is not what it would make. As far as
    names tell: an attribute of such a name may be somebody else's, and counts all the same.
    """
    return any(_looks(statement) for _, statement in reached_code(job, project))


def _looks(statement: ast.stmt) -> bool:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return bool(attributes(statement) & (OF_THE_INTERVAL | LOOKS_AT_EVERYTHING) or names & LOOKS_AT_EVERYTHING)


@dataclass(frozen=True)
class CodeCall:
    """A call; ``silenced`` says that its line ends with the comment by which an author answers for it."""

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
    file, every = module.path.relative_to(project).as_posix(), lines_of(module.path)
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            for name, first in _names(node):
                lines = every[first - 1 : max(first, node.end_lineno or first)]
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
    return found_once(("lines", str(path)), lambda: text_in_file(path).splitlines())
