"""What importing one module of the project binds and runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stagehold.code.project import Module, find_module
from stagehold.code.references import called_at_once, is_bare_constant, nested_imports, stored_names

FOR_TYPE_CHECKERS = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
FOR_SCRIPTS = "__name__ == '__main__'"  # neither branch runs while a job is imported
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


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


@dataclass
class Bindings:
    """A module's names, and the statements that run when it is imported whether or not their names are used."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[Imported]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.definitions or name in self.imports


def is_project(name: str, project: Path) -> bool:
    """Whether a dotted name belongs to the project; everything else is installed, and counted by its version."""
    return find_module(name.partition(".")[0], project) is not None


def bind(module: Module, project: Path) -> Bindings:
    """:raises CannotFollow: for a star import"""
    bindings = Bindings()
    _scan(module.tree.body, module, bindings)
    own = {
        name for name, imports in bindings.imports.items() if any(is_project(one.module, project) for one in imports)
    }
    own |= set(bindings.definitions)
    bindings.effects = [statement for statement in bindings.effects if _runs_own_code(statement, own)]
    return bindings


def imports_of(statements: Iterable[ast.Import | ast.ImportFrom], module: Module) -> Mapping[str, list[Imported]]:
    """Names that import statements bind."""
    bound: dict[str, list[Imported]] = {}
    for statement in statements:
        for alias in statement.names:
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
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        bindings.effects.append(statement)


def _runs_own_code(statement: ast.stmt, own: set[str]) -> bool:
    """Whether a statement can change more than the names it binds: what only binds counts where its name is used."""
    if isinstance(statement, Assignment):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(isinstance(node, ast.Attribute | ast.Subscript) for target in targets for node in ast.walk(target)):
            return True
    elif not isinstance(statement, Definition):
        return True
    return not own.isdisjoint(called_at_once(statement))


def _imported(statement: ast.Import | ast.ImportFrom, alias: ast.alias, module: Module) -> tuple[str, Imported]:
    if isinstance(statement, ast.ImportFrom):
        if alias.name == "*":
            raise CannotFollow(f"{module.name} line {statement.lineno}: a star import")
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
