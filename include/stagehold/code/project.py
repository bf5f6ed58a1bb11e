"""Files of the project with code, found and parsed without importing them: Python, and SQL and scripts as functions of
Python that would run them.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType

import stagehold
from stagehold.code.script_job import SRC, function_of, is_script, script_tree
from stagehold.code.sql_job import is_sql, text_in, tree_of, written_sql
from stagehold.code.unchanging_files import content_of, found_once

Function = ast.FunctionDef | ast.AsyncFunctionDef
LIBRARY = Path(stagehold.__file__).parent
# Projects whose modules this process compiles from their files.
_compiled_here: set[str] = set()


@dataclass(frozen=True)
class Module:
    """A parsed file. ``package`` is what its relative imports start from."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


def code_folders(project: Path) -> tuple[Path, ...]:
    """The folders that Python imports modules of the project from, the one that counts first."""
    below = project / SRC
    return (project, below) if below.is_dir() else (project,)


def places_text(project: Path) -> str:
    """Where a module was looked for, for whoever is told that it is not there."""
    return f"under {project} or its {SRC}/"


def find_modules_of(project: Path) -> None:
    """Have this process import modules of the project before others of their names."""
    compile_modules_of(project)
    own, *others = map(str, code_folders(project))
    if own not in sys.path:
        sys.path.insert(0, own)
    for folder in others:
        if folder not in sys.path:
            sys.path.insert(sys.path.index(own) + 1, folder)


def compile_modules_of(project: Path) -> None:
    """Have this process run what is in the project's files when it imports them, see `CompiledHere`. It does not
    change from where modules are imported.
    """
    if str(project) in _compiled_here:
        return
    _compiled_here.add(str(project))
    if _finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder)
    for folder in sys.path_importer_cache.copy():
        if _is_below(folder, str(project)):
            sys.path_importer_cache.pop(folder, None)


class CompiledHere(SourceFileLoader):
    """Compiles a module from its file whenever it is imported, and knows what it compiled. Python itself takes what it
    compiled before for current if the file has the same size and was changed in the same second: not so behind a
    second edit within it, nor where a checkout, an archive or an image sets the times of files.
    """

    digest: str | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        source = content_of(Path(self.get_filename(fullname)))
        self.digest = source_digest(source)
        return self.source_to_code(source, self.path)


def source_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_of_project(file: str, project: str) -> bool:
    """Whether a file or folder is the project's own: not of an environment in its folder, nor of this library. It is
    asked for every frame of a stack, so it only compares paths as texts.
    """
    return _is_below(file, project) and "/site-packages" not in file and not _is_below(file, str(LIBRARY))


def _is_below(file: str, folder: str) -> bool:
    return file == folder or file.startswith(f"{folder}/")


def _finder(folder: str) -> FileFinder:
    """:raises ImportError: the folder is none of a project's, and is for those who find modules elsewhere"""
    if not any(is_of_project(folder, project) for project in _compiled_here) or not Path(folder).is_dir():
        raise ImportError(folder)
    return FileFinder(
        folder,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (CompiledHere, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )


def module_file(name: str, project: Path) -> Path | None:
    """The file or, for a package without ``__init__.py``, the folder with code that ``import name`` would take from
    the project. A package with one is whole: of its name, no other folder counts.
    """
    *parents, last = name.split(".")
    folders = code_folders(project)
    for parent in parents:
        inside = [folder / parent for folder in folders if (folder / parent).is_dir()]
        whole = [folder for folder in inside if (folder / "__init__.py").is_file()]
        folders = tuple(whole[:1] or inside)
    places = [folder / last for folder in folders]
    files = (file for place in places for file in (place / "__init__.py", place.with_suffix(".py")))
    found = next(filter(Path.is_file, files), None)
    return found or next((place for place in places if place.is_dir() and any(place.rglob("*.py"))), None)


def find_module(name: str, project: Path) -> Path | None:
    """The file or folder that ``import name`` would take from ``project``, see `module_file`.

    None means that the name is not the project's: the standard library or an installed package.
    """
    return found_once(("module", name, str(project)), lambda: _find_module(name, project))


def _find_module(name: str, project: Path) -> Path | None:
    if is_sql(name) or is_script(name):
        return _named_file(name, project)
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    return module_file(name, project)


def _named_file(name: str, project: Path) -> Path | None:
    """The file that SQL or a script is in; none that lies outside of the project."""
    path = Path((text_in(name) or (name,))[0])
    found = not path.is_absolute() and ".." not in path.parts and project.joinpath(path).is_file()
    return project / path if found else None


def load_module(name: str, project: Path) -> Module | None:
    """:raises SyntaxError: the file is no Python; UnicodeDecodeError likewise"""
    path = find_module(name, project)
    if path is None:
        return None
    if path.is_dir():
        return Module(name, path / "__init__.py", ast.Module(body=[], type_ignores=[]))
    called = name if is_sql(name) or is_script(name) else None
    return Module(name, path, _parsed(path, content_of(path), called))


@lru_cache(maxsize=256)
def _parsed(path: Path, content: bytes, called: str | None) -> ast.Module:
    if called is None:
        return ast.parse(content, str(path))
    return function_of(script_tree(path, called)) if is_script(called) else tree_of(written_sql(path, called))


def read_sql(module: str, project: Path) -> str:
    """The text of a module of SQL, in the lines of its file.

    :raises FileNotFoundError: there is no such file
    :raises ValueError: the file cannot be read, or does not have it
    """
    path = find_module(module, project)
    if path is None:
        raise FileNotFoundError(module)
    return written_sql(path, module)


def functions(module: Module) -> Mapping[str, Function]:
    """Functions by name that importing the module would define, the last one of a name."""
    return _functions(module.tree)


@lru_cache(maxsize=256)
def _functions(tree: ast.Module) -> Mapping[str, Function]:
    """Hundreds of pipelines name functions of one module."""
    return {node.name: node for node in _top_level(tree) if isinstance(node, Function)}


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    """What stands at module level, also inside ``if`` and ``try``, in the order of the file."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.ClassDef | ast.expr):
            yield from _top_level(child)
