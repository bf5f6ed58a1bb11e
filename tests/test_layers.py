"""The library's layers: nothing imports upward, and what reads, plans and records needs neither Spark nor Airflow."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from stagehold.settings import PROJECT

PACKAGE = PROJECT / "include" / "stagehold"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "errors settings secrets project_file extras",
        "model",
        "extensions",
        "code",
        "spec",
        "topology",
        "plan",
        "checkpoints",
        "ledger",
        "lake gates",
        "chronicle",
        "viewer",
        "spark",
        "sources",
        "run",
        "airflow",
        "local",
        "testing",
        "cli __main__",
        "notebook",
    )
)
ROOMS = sorted({path.parent for path in FILES if path.name == "__init__.py"})
MODULES_IN_A_ROOM = 15
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

HEAVY = frozenset({"airflow", "pyspark", "delta", "great_expectations", "deltalake", "duckdb"})
# Where a module of each may be imported when the file is loaded; everywhere else only inside the function that needs
# it.
HEAVY_AT_HOME = {
    **dict.fromkeys(("lake", "gates", "spark", "sources", "run"), HEAVY - {"airflow"}),
    "airflow": frozenset({"airflow"}),
}


def unit(path: Path) -> str:
    """The part of the library that a file belongs to: ``spec`` for spec/pipeline.py, ``settings`` for settings.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def found_in_files(offences: Callable[[Path], Iterable[str]]) -> list[str]:
    """What a rule finds wrong, with its file. A rule is one test: one for each file would take longer than the rule."""
    return [f"{path.relative_to(PACKAGE)}: {offence}" for path in FILES for offence in offences(path)]


@cache
def tree_of(path: Path) -> ast.Module:
    """Read once for all rules: nobody changes it."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
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
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_for_types(node):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported([node])
        waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def upward(path: Path) -> Iterator[str]:
    # The package's own __init__ hands out names of the model, so it stands where the model stands; what makes DAGs is
    # imported when a DAG file calls it.
    front = unit(path) == "__init__"
    rank = RANK["model" if front else unit(path)]
    names = imported_when_loaded(tree_of(path)) if front else imported(nodes_of(path))
    ours = (name.split(".") for name in names if name.startswith("stagehold."))
    return (".".join(name) for name in ours if RANK.get(name[1], 0) > rank)


def test_no_module_imports_a_higher_layer() -> None:
    assert found_in_files(upward) == []


def heavy_not_at_home(path: Path) -> set[str]:
    roots = {name.split(".")[0] for name in imported_when_loaded(tree_of(path))}
    return roots & (HEAVY - HEAVY_AT_HOME.get(unit(path), frozenset()))


def test_heavy_packages_are_imported_where_they_are_at_home() -> None:
    assert found_in_files(heavy_not_at_home) == []


@pytest.mark.parametrize("folder", ROOMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_folder_is_a_room_that_says_which_question_it_answers(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MODULES_IN_A_ROOM
    assert ast.get_docstring(tree_of(folder / "__init__.py"))


def test_the_architecture_lists_every_room_with_its_question() -> None:
    text = (PROJECT / "ARCHITECTURE.md").read_text().partition("Each room of the library")[2]
    rows = re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", text, re.MULTILINE)
    rooms = {str(path.relative_to(PACKAGE)): tree_of(path / "__init__.py") for path in ROOMS[1:]}
    assert {room for room, _ in rows} == set(rooms)
    assert [room for room, question in rows if not str(ast.get_docstring(rooms[room])).startswith(question)] == []


def room_of(name: str) -> str | None:
    """The room of a module of ours that an import names, or a name in it; None of what is no room's."""
    parts = name.split(".")
    while parts[1:]:
        path = PACKAGE.parent.joinpath(*parts)
        if path.with_suffix(".py").exists():
            return ".".join(parts[1:-1]) or parts[1]
        if (path / "__init__.py").exists():
            return ".".join(parts[1:])
        parts.pop()
    return None


def room_imports() -> dict[str, set[str]]:
    """What each room imports of others, inside functions, too, but not for types only."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        own = room_of(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"))
        names = imported(without_types(tree_of(path)))
        rooms = {room_of(name) for name in names if name.startswith("stagehold.")}
        if own:
            found.setdefault(own, set()).update(room for room in rooms if room and room != own)
    return found


def without_types(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes of it, but for those that only type checkers read."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.orelse if is_for_types(node) else ast.iter_child_nodes(node))


def test_no_rooms_import_each_other_at_any_depth() -> None:
    imports = room_imports()
    reached = {room: reachable(room, imports) for room in imports}
    circles = {frozenset(other for other in reached[room] if room in reached[other]) for room in imports}
    assert [sorted(circle) for circle in circles if circle] == []


def reachable(room: str, imports: dict[str, set[str]]) -> set[str]:
    """The rooms that one imports, and those that these import, and so on; itself only if a circle leads back."""
    found: set[str] = set()
    waiting = [room]
    while waiting:
        new = imports.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def offered(path: Path) -> Iterator[str]:
    """What a module defines, what it lists in ``__all__``, and all of the modules of which it imports everything."""
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        for target in node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name)) if target else ()
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from ast.literal_eval(node.value)
        if isinstance(node, ast.ImportFrom) and node.module and [alias.name for alias in node.names] == ["*"]:
            yield from offered(PACKAGE.parent.joinpath(*node.module.split(".")).with_suffix(".py"))


@pytest.fixture(scope="module")
def names() -> dict[str, set[str]]:
    """The names that each module of the library offers."""
    modules = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in FILES}
    return {name.removesuffix(".__init__"): {*offered(path)} for name, path in modules.items()}


def names_from(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of all that is imported by name from ours. To parse a thousand files for that takes seconds."""
    for module, names in re.findall(r"^ *from (stagehold[\w.]*) import (\([^)]*\)|.*)", path.read_text(), re.MULTILINE):
        given = re.sub(r"#.*", "", names).strip("()\n ").split(",")
        yield from ((module, name.split()[0]) for name in given if name.strip())


@pytest.mark.parametrize("folder", ["include", "tests", "bench", "fuzz", "dags", "plugins", "jobs"])
def test_a_name_is_imported_from_the_module_that_defines_it(folder: str, names: dict[str, set[str]]) -> None:
    imports = {
        f"{path.relative_to(PROJECT)}: {module}.{name}": name in names[module]
        for path in (PROJECT / folder).rglob("*.py")
        for module, name in names_from(path)
        if module in names and f"{module}.{name}" not in names and name != "*"
    }
    assert [place for place, at_home in imports.items() if not at_home] == []


def bound_by_imports(nodes: Iterable[ast.AST]) -> set[str]:
    imports = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom))
    return {(alias.asname or alias.name).split(".")[0] for one in imports for alias in one.names}


def evaluated(node: ast.AST) -> Iterator[ast.Name]:
    """Names that are looked up when the module runs: not those of annotations and casts."""
    for name, value in ast.iter_fields(node):
        of_cast = name == "args" and isinstance(node, ast.Call) and ast.unparse(node.func) == "cast"
        parts = value[1:] if of_cast else value if isinstance(value, list) else [value]
        for part in parts if name not in ("annotation", "returns") else ():
            if isinstance(part, ast.Name):
                yield part
            elif isinstance(part, ast.AST):
                yield from evaluated(part)


def looked_up_though_for_types(path: Path) -> Iterator[str]:
    tree = tree_of(path)
    for_types = [node for node in tree.body if is_for_types(node)]
    rest = [node for node in tree.body if node not in for_types]
    typed = bound_by_imports(for_types) - bound_by_imports(rest)
    if typed:
        yield from (f"{name.id}, line {name.lineno}" for node in rest for name in evaluated(node) if name.id in typed)


def test_what_is_imported_for_types_only_is_not_looked_up() -> None:
    assert found_in_files(looked_up_though_for_types) == []


def test_a_name_is_the_name_of_one_file() -> None:
    """But for the two names that Python reads."""
    names = Counter(path.name for path in FILES if path.name not in ("__init__.py", "__main__.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_name_is_the_name_of_one_class() -> None:
    classes = Counter(node.name for path in FILES for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1 and not name.startswith("_")] == []


def test_every_part_of_the_library_has_a_layer() -> None:
    assert {unit(path) for path in FILES} - {"__init__"} <= set(RANK)


WITHOUT_HEAVY = ("model", "code", "spec", "topology", "plan", "checkpoints", "ledger", "viewer", "cli", "local")
LOAD_EACH = """
import importlib, sys
heavy, *parts = {given!r}
sys.modules.update(dict.fromkeys(heavy))  # None there makes an import of it fail
for modules in parts:
    for ours in [name for name in sys.modules if name.partition(".")[0] == "stagehold"]:
        del sys.modules[ours]
    for module in modules:
        importlib.import_module(module)
"""


def test_each_part_loads_by_itself_where_spark_and_airflow_are_not_installed() -> None:
    # Those in migrations only Alembic can load.
    loadable = [path for path in FILES if "migrations" not in path.parts]
    modules = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in loadable}
    parts = [[modules[path] for path in loadable if unit(path) == part] for part in WITHOUT_HEAVY]
    assert all(parts)
    script = LOAD_EACH.format(given=[sorted(HEAVY), *parts])
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr


def test_production_is_named_where_it_is_read_and_nowhere_else():
    """Everybody else writes to the lake of the settings, which in a sandbox is the sandbox's own."""
    naming = [str(path.relative_to(PACKAGE)) for path in FILES if "settings.production" in path.read_text()]
    assert naming == [
        "airflow/telling/stage_lineage.py",
        "cli/common/request.py",
        "run/clearing/sandboxes.py",
        "run/intervals/retake.py",
        "run/planning/acceptance.py",
        "run/planning/earlier_states.py",
        "run/planning/planning.py",
        "run/planning/shared_facts.py",
        "run/planning/snapshots.py",
        "sources/source_files.py",
    ]


def test_who_opens_the_ledger_keeps_its_facts_in_the_lake_as_well():
    opening = [path.relative_to(PACKAGE) for path in FILES if "Ledger.open(" in path.read_text()]
    assert opening == [Path("chronicle/chronicle.py")]
