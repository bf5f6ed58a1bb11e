"""What one statement refers to, and its text without what does not count."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator

Chain = tuple[str, ...]  # a dotted name: ("helpers", "clean") for helpers.clean
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
IGNORED_FIELDS = ("ctx", "kind", "type_comment")  # say nothing that the rest of the tree does not


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
    return f"{type(value).__name__}:{value!r}"


def is_bare_constant(statement: object) -> bool:
    """A docstring, or any other constant that stands alone: it does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


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


def nested_imports(statement: ast.stmt) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports anywhere inside the statement."""
    return (node for node in ast.walk(statement) if isinstance(node, ast.Import | ast.ImportFrom))


def attributes(statement: ast.stmt) -> frozenset[str]:
    return frozenset(node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute))


def stored_names(statement: ast.stmt) -> frozenset[str]:
    """Names that running the statement may bind, functions and classes included."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    definitions = (
        node for node in ast.walk(statement) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return frozenset(names | {node.name for node in definitions})


def called_at_once(node: ast.AST) -> Iterator[str]:
    """First names of what is called when the statement itself runs: calls, decorators, base classes;
    no function bodies.
    """
    if isinstance(node, ast.ClassDef):
        yield from _roots([*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)])
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _roots(node.decorator_list)
    if isinstance(node, ast.Call):
        yield from _roots([node.func])
    for child in _run_at_once(node):
        yield from called_at_once(child)


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
