"""What the names in a statement stand for, as far as the text shows it: imports, constants, what they were given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from stagehold.code.bindings import imports_of
from stagehold.code.project import Function, Module
from stagehold.code.sql_tables import UNKNOWN

PATH = "pathlib.Path"
PATH_FROM_PATH = frozenset(
    {"joinpath", "with_suffix", "with_name", "with_stem", "resolve", "absolute", "expanduser", "cwd", "home"}
)
SESSIONS = frozenset({"spark", "sparkSession", "session", "spark_session"})
MAKES_SESSION = frozenset({"getOrCreate", "getActiveSession", "active", "newSession"})


class ModuleNames:
    """What the names of one module stand for: what it imports anywhere, and its constants."""

    def __init__(self, module: Module) -> None:
        self.module = module
        statements = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        self.imported = {name: target for statement in statements for name, target in _imported(statement, module)}
        self.assigned = _assigned(module.tree.body)
        self.defined = {node.name for node in module.tree.body if isinstance(node, Function | ast.ClassDef)}


@lru_cache(maxsize=256)
def names_of(module: Module) -> ModuleNames:
    return ModuleNames(module)


def _imported(statement: ast.Import | ast.ImportFrom, module: Module) -> Iterator[tuple[str, str]]:
    for name, imports in imports_of([statement], module).items():
        yield from ((name, str(imported)) for imported in imports)


def _assigned(body: Sequence[ast.AST]) -> Mapping[str, ast.expr]:
    """Names that are given one expression, once."""
    found: dict[str, list[ast.expr]] = {}
    for statement in body:
        for target, value in _assignments(statement):
            found.setdefault(target, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.withitem(optional_vars=ast.Name(id=name), context_expr=value):
            yield name, value


class NameScope:
    """A statement of a module, most often a function, with what its names stand for."""

    def __init__(self, names: ModuleNames, statement: ast.stmt) -> None:
        self.names, self.statement = names, statement

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.statement))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def assigned(self) -> Mapping[str, ast.expr]:
        return {**self.names.assigned, **_assigned(self.nodes)}

    @cached_property
    def parameters(self) -> frozenset[str]:
        return frozenset(node.arg for node in self.nodes if isinstance(node, ast.arg))

    @cached_property
    def paths(self) -> frozenset[str]:
        """Parameters that are said to be paths."""
        said = (node for node in self.nodes if isinstance(node, ast.arg) and node.annotation)
        return frozenset(node.arg for node in said if node.annotation and self.target(node.annotation) == PATH)

    def is_path(self, node: ast.expr) -> bool:
        """Whether an expression is surely one of pathlib's paths."""
        match self.value(node):
            case ast.Name(id=name):
                return name in self.paths
            case ast.BinOp(left=left, op=ast.Div()):
                return self.is_path(left)
            case ast.Attribute(value=value, attr="parent"):
                return self.is_path(value)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in PATH_FROM_PATH:
                return self.is_path(value) or self.target(value) == PATH
        return self.makes(node, PATH)

    def makes(self, node: ast.expr, *classes: str) -> bool:
        """Whether an expression is a new object of one of these."""
        made = self.value(node)
        return isinstance(made, ast.Call) and self.target(made.func) in classes

    def is_session(self, node: ast.expr) -> bool:
        """Whether an expression is a session of Spark, as far as names tell."""
        found = self.value(node)
        if isinstance(found, ast.Call):
            return last_name(found.func) in MAKES_SESSION
        return last_name(node) in SESSIONS or last_name(found) in SESSIONS

    def reader(self, node: ast.expr) -> Mapping[str, ast.expr] | None:
        """The options of what ``session.read`` makes, the format among them; None if it is something else."""
        options: dict[str, ast.expr] = {}
        while True:
            match self.value(node):
                case ast.Attribute(attr="read" | "readStream"):
                    return options
                case ast.Call(func=ast.Attribute(value=value, attr="format"), args=[name]):
                    options.setdefault("format", name)
                case ast.Call(func=ast.Attribute(value=value, attr="option"), args=[ast.Constant(value=key), given]):
                    options.setdefault(str(key), given)
                case ast.Call(func=ast.Attribute(value=value, attr="option" | "options" | "schema" | "format")) as call:
                    options = {**{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}, **options}
                case _:
                    return None
            node = value

    def value(self, node: ast.expr) -> ast.expr:
        """What a name was given, if it is one that was given something once; else the expression itself."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id in self.assigned and node.id not in seen | self.parameters:
            seen.add(node.id)
            node = self.assigned[node.id]
        return node

    def target(self, node: ast.expr) -> str | None:
        """The full dotted name that an expression leads to through imports; a plain name is that of a built-in."""
        parts: list[str] = []
        node = self.value(node)
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = self.value(node.value)
        if not isinstance(node, ast.Name) or node.id in self.parameters:
            return None
        first = self.names.imported.get(node.id)
        if first is None and (parts or node.id in self.names.defined or node.id in self.assigned):
            return None
        return ".".join((first or node.id, *reversed(parts)))

    def literal(self, node: ast.expr | None) -> str | None:
        """The text that an expression is, where the code shows it."""
        match self.value(node) if node is not None else None:
            case ast.Constant(value=str(text)):
                return text
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined("", left, right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined("/", left, right)
            case ast.Call(func=func, args=args) if args and self.target(func) in (PATH, "os.path.join"):
                return self._joined("/", *args)
            case ast.Call(func=func, args=[only]) if self.target(func) in ("str", "os.fspath", "os.path.abspath"):
                return self.literal(only)
        return None

    def _joined(self, separator: str, *nodes: ast.expr) -> str | None:
        texts = [self.literal(node) for node in nodes]
        known = [text for text in texts if text is not None]
        return separator.join(known) if len(known) == len(texts) else None

    def text(self, node: ast.expr) -> str:
        """A text with `UNKNOWN` for what the code does not show of it."""
        match self.value(node):
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=values):
                return "".join(self.text(part) for part in values)
            case ast.FormattedValue(value=value):
                return self.text(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left) + self.text(right)
            case ast.Call(func=ast.Attribute(value=value, attr="strip" | "lstrip" | "rstrip" | "lower" | "format")):
                return self.text(value)
            case ast.Call(func=func, args=[ast.expr() as only, *_]) if self.target(func) == "textwrap.dedent":
                return self.text(only)
        return UNKNOWN


def last_name(node: ast.AST) -> str:
    """The name at the end of a dotted one, or none."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
