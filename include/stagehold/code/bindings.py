"""What importing one module of the project binds and runs."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stagehold.code.project import Module, find_module
from stagehold.code.script_job import is_star
from stagehold.code.sql_job import SqlText

FOR_TYPE_CHECKERS = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
FOR_SCRIPTS = "__name__ == '__main__'"  # neither branch runs while a job is imported
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
Chain = tuple[str, ...]  # a dotted name: ("helpers", "clean") for helpers.clean
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
STATEMENTS = 4096  # of which is kept what their text shows: hundreds of stages reach the same ones
IGNORED_FIELDS = ("ctx", "kind", "type_comment")  # say nothing that the rest of the tree does not


class CannotFollow(Exception):
    """Something whose meaning the text of the code does not show; never leaves `code`."""


@dataclass(frozen=True)
class Imported:
    """What an import binds a name to: a module, or a name in it. ``loads`` are the modules that it makes Python run."""

    module: str
    name: str | None
    loads: tuple[str, ...]

    def __str__(self) -> str:
        return self.module if self.name is None else f"{self.module}.{self.name}"


class Bindings:
    """A module's names, and the statements that run when it is imported whether or not their names are used."""

    def __init__(self) -> None:
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, list[Imported]] = {}
        self.stars: list[str] = []  # modules of which it imports `*`
        self.effects: list[ast.stmt] = []

    def __contains__(self, name: str) -> bool:
        return name in self.definitions or name in self.imports


def is_project(name: str, project: Path) -> bool:
    """Whether a dotted name belongs to the project; everything else is installed, and counted by its version."""
    return find_module(name.partition(".")[0], project) is not None


def bind(module: Module, project: Path) -> Bindings:
    bindings = Bindings()
    _scan(module.tree.body, module, bindings)
    own = {
        name
        for name, imports in bindings.imports.items()
        if any(is_project(imported.module, project) for imported in imports)
    }
    own |= set(bindings.definitions)
    starred = any(is_project(star, project) for star in bindings.stars)
    known = {*dir(builtins), *bindings.imports} if starred else None
    bindings.effects = [statement for statement in bindings.effects if _runs_own_code(statement, own, known)]
    return bindings


def imports_of(statements: Iterable[ast.Import | ast.ImportFrom], module: Module) -> Mapping[str, list[Imported]]:
    """Names that import statements bind, other than by a star."""
    bound: dict[str, list[Imported]] = {}
    for statement in statements:
        for alias in () if is_star(statement) else statement.names:
            name, imported = _imported(statement, alias, module)
            bound.setdefault(name, []).append(imported)
    return bound


def _scan(body: list[ast.stmt], module: Module, bindings: Bindings) -> None:
    for statement in body:
        test = ast.unparse(statement.test) if isinstance(statement, ast.If) else ""
        if isinstance(statement, ast.If) and (test == FOR_SCRIPTS or test in FOR_TYPE_CHECKERS):
            _scan([*(_imports_in(statement) if test in FOR_TYPE_CHECKERS else []), *statement.orelse], module, bindings)
        elif not is_bare_constant(statement):
            _bind(statement, module, bindings)


def _imports_in(statement: ast.If) -> list[ast.stmt]:
    """What is imported for type checkers: annotations may name it."""
    return [inner for inner in statement.body if isinstance(inner, ast.Import | ast.ImportFrom)]


def _bind(statement: ast.stmt, module: Module, bindings: Bindings) -> None:
    defines = isinstance(statement, Definition)
    for name in {statement.name} if isinstance(statement, Definition) else stored_names(statement):
        bindings.definitions.setdefault(name, []).append(statement)
    for name, imports in imports_of(() if defines else nested_imports(statement), module).items():
        bindings.imports.setdefault(name, []).extend(imports)
    stars = () if defines else filter(is_star, nested_imports(statement))
    bindings.stars.extend(absolute_name(star, module) for star in stars)
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        bindings.effects.append(statement)


def _runs_own_code(statement: ast.stmt, own: set[str], known: set[str] | None) -> bool:
    """Whether a statement can change more than the names it binds: what only binds counts where its name is used. Names
    other than those that are ``known`` may come from a star import of the project.
    """
    if isinstance(statement, Assignment):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(isinstance(node, ast.Attribute | ast.Subscript) for target in targets for node in ast.walk(target)):
            return True
    elif not isinstance(statement, Definition):
        return True
    called = called_at_once(statement)
    return not own.isdisjoint(called) or (known is not None and not called <= known)


def _imported(statement: ast.Import | ast.ImportFrom, alias: ast.alias, module: Module) -> tuple[str, Imported]:
    if isinstance(statement, ast.ImportFrom):
        source = absolute_name(statement, module)
        return alias.asname or alias.name, Imported(source, alias.name, with_parents(source))
    if alias.asname is not None:
        return alias.asname, Imported(alias.name, None, with_parents(alias.name))
    first = alias.name.partition(".")[0]
    return first, Imported(first, None, with_parents(alias.name))


def absolute_name(statement: ast.ImportFrom, module: Module) -> str:
    if not statement.level:
        return statement.module or ""
    base = module.package.split(".")
    base = base[: len(base) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def with_parents(name: str) -> tuple[str, ...]:
    parts = name.split(".")
    return tuple(".".join(parts[:length]) for length in range(1, len(parts) + 1))


@lru_cache(maxsize=STATEMENTS)
def text_of(statement: ast.stmt) -> str:
    """Its canonical text."""
    return canonical(statement)


def canonical(node: ast.AST) -> str:
    """A text that is equal for equal code: formatting, comments, docstrings and the Python version do not show."""
    fields = ((name, value) for name, value in ast.iter_fields(node) if name not in IGNORED_FIELDS)
    inside = ",".join(
        f"{name}={_canonical_value(value)}" for name, value in fields if value is not None and value != []
    )
    return f"{type(node).__name__}({inside})"


def _canonical_value(value: object) -> str:
    if isinstance(value, ast.AST):
        return canonical(value)
    if isinstance(value, list):
        return f"[{','.join(_canonical_value(item) for item in value if not is_bare_constant(item))}]"
    if isinstance(value, SqlText):
        return f"sql:{value.words!r}"
    return f"{type(value).__name__}:{value!r}"


def is_bare_constant(statement: object) -> bool:
    """A docstring, or any other constant that stands alone: it does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@lru_cache(maxsize=STATEMENTS)
def global_chains(statement: ast.stmt) -> frozenset[Chain]:
    """Dotted names that start at module level: parameters and local variables of the same name are not meant.

    Names in quoted annotations are not seen; they are never run.
    """
    table = symtable.symtable(ast.unparse(statement), "<statement>", "exec")
    return chains_from(statement, frozenset(_global_names(table)))


def chains_from(node: ast.AST, roots: frozenset[str]) -> frozenset[Chain]:
    """Dotted names inside ``node`` that start with one of ``roots``, wherever that is bound."""
    chain = _chain(node)
    if chain:
        return frozenset({chain} if chain[0] in roots else ())
    return frozenset().union(*(chains_from(child, roots) for child in ast.iter_child_nodes(node)))


def line_of(statement: ast.stmt, chain: Chain) -> int:
    """The first line that has a dotted name; that of the statement if none has."""
    lines = (node.lineno for node in ast.walk(statement) if isinstance(node, ast.expr) and _chain(node) == chain)
    return min(lines, default=statement.lineno) if chain else statement.lineno


@lru_cache(maxsize=STATEMENTS)
def nested_imports(statement: ast.stmt) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Imports anywhere inside the statement."""
    return tuple(node for node in ast.walk(statement) if isinstance(node, ast.Import | ast.ImportFrom))


@lru_cache(maxsize=STATEMENTS)
def attributes(statement: ast.stmt) -> frozenset[str]:
    return frozenset(node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute))


@lru_cache(maxsize=STATEMENTS)
def stored_names(statement: ast.stmt) -> frozenset[str]:
    """Names that running the statement may bind, functions and classes included."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    definitions = (
        node for node in ast.walk(statement) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return frozenset(names | {node.name for node in definitions})


@lru_cache(maxsize=STATEMENTS)
def called_at_once(statement: ast.AST) -> frozenset[str]:
    """First names of what is called when the statement itself runs: calls, decorators, base classes;
    no function bodies.
    """
    return frozenset(_called(statement))


def _called(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        yield from _roots([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _roots(node.decorator_list)
    if isinstance(node, ast.Call):
        yield from _roots([node.func])
    for child in _run_at_once(node):
        yield from _called(child)


def _run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, Scope):
        yield from ast.iter_child_nodes(node)
        return
    yield from getattr(node, "decorator_list", [])
    yield from node.args.defaults
    yield from (default for default in node.args.kw_defaults if default is not None)


def _roots(expressions: list[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        root: ast.expr = expression
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name):
            yield root.id


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    in_function = table.get_type() not in ("module", "class")
    for symbol in table.get_symbols():
        if symbol.is_global() if in_function else symbol.is_referenced():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)


def _chain(node: ast.AST) -> Chain:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()
