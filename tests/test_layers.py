"""The library's layers: nothing imports upward, and what reads, plans and records needs neither Spark nor Airflow."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagehold.settings import PROJECT

PACKAGE = PROJECT / "include" / "stagehold"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in ("errors", "settings", "model", "plan", "ledger", "lake gates", "run", "airflow", "local", "cli __main__")
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

HEAVY = frozenset({"airflow", "pyspark", "delta", "great_expectations", "deltalake", "duckdb"})
# Where a module of each may be imported when the file is loaded; everywhere else only inside the function that needs it.
HEAVY_AT_HOME = {"run": HEAVY - {"airflow"}, "lake": HEAVY - {"airflow"}, "gates": HEAVY - {"airflow"}, "airflow": frozenset({"airflow"})}


def unit(path: Path) -> str:
    """The part of the library that a file belongs to: ``model`` for model/spec.py, ``errors`` for errors.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_when_loaded(tree: ast.Module) -> Iterator[str]:
    """Imports that run when the module is loaded: not those inside functions or under TYPE_CHECKING."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(node)
        waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_imports_a_higher_layer(path: Path) -> None:
    # The package's own __init__ hands out names of the model, so it stands where the model stands.
    rank = RANK[unit(path)] if unit(path) != "__init__" else RANK["model"]
    ours = (name.split(".") for name in imported(ast.parse(path.read_text())) if name.startswith("stagehold."))
    assert [".".join(name) for name in ours if RANK.get(name[1], 0) > rank] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_they_are_at_home(path: Path) -> None:
    roots = {name.split(".")[0] for name in imported_when_loaded(ast.parse(path.read_text()))}
    assert roots & (HEAVY - HEAVY_AT_HOME.get(unit(path), frozenset())) == set()


def test_every_part_of_the_library_has_a_layer() -> None:
    assert {unit(path) for path in FILES} - {"__init__"} <= set(RANK)


@pytest.mark.parametrize("part", ["model", "plan", "ledger", "cli", "local"])
def test_a_part_loads_where_spark_and_airflow_are_not_installed(part: str) -> None:
    loadable = [path for path in FILES if unit(path) == part and "migrations" not in path.parts]  # those only Alembic can load
    modules = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in loadable]
    script = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(HEAVY)!r}))\n"  # None there makes an import of it fail
        f"for module in {modules!r}: importlib.import_module(module)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
