"""The project's code as one archive that Python workers of any Spark server can import.

It holds what the syntax trees of jobs reach; all of their packages, where a tree cannot be followed. Each module lies
in it as its author wrote it and compiled. The compiled one is what runs: its file is called as in the project, so that
a traceback out of a worker names it, and it begins with `spark.session.worker.prepare`.
"""

from __future__ import annotations

import ast
import hashlib
import io
import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path, PurePath
from zipfile import ZipFile, ZipInfo

from stagehold.code.project import LIBRARY, code_folders
from stagehold.code.script_job import imported_as, is_script
from stagehold.code.stage_code import code_fingerprint
from stagehold.code.unchanging_files import content_of

OF_LIBRARY = tuple(
    f"stagehold/{name}.py"
    for name in (
        "__init__",
        "model/__init__",
        "model/context",
        "spark/__init__",
        "spark/session/__init__",
        "spark/session/worker",
    )
)
# A worker that has the library installed still finds the rest of it.
REST_OF_PACKAGE = b"\n__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
PREPARE = "__import__('stagehold.spark.session.worker', fromlist=['prepare']).prepare()"
FORMAT = "1"
UNCHECKED = (0b01).to_bytes(4, "little")  # the compiled module counts whatever its source says


@dataclass(frozen=True)
class ProjectArchive:
    """``sources`` by their path below the project; two archives of equal sources have one digest."""

    sources: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """A hash of the sources: what Python makes of them is not the same byte for byte each time."""
        found = hashlib.sha256(f"{FORMAT} {sys.version_info[:2]}".encode())
        for name, source in sorted(self.sources.items()):
            found.update(f"{name}\0{len(source)}\0".encode())
            found.update(source)
        return found.hexdigest()[:16]

    @property
    def name(self) -> str:
        return f"project-{self.digest}.zip"

    def content(self) -> bytes:
        buffer = io.BytesIO()
        with ZipFile(buffer, "w") as archive:
            places = self._places()
            for folder in sorted({f"{parent.as_posix()}/" for place in places for parent in Path(place).parents[:-1]}):
                archive.writestr(ZipInfo(folder), b"")
            for place, name in sorted(places.items()):
                source = self.sources[name]
                archive.writestr(ZipInfo(place), source)
                compiled = None if name in OF_LIBRARY else _compiled(name, source)
                if compiled is not None:
                    archive.writestr(ZipInfo(f"{place}c"), compiled)
        return buffer.getvalue()

    def _places(self) -> Mapping[str, str]:
        """The sources by their places in the archive, which a worker looks for all modules in: those of the folder
        `src` are there under either name that the project may call them by.
        """
        without_src = {imported_as(PurePath(name)).as_posix(): name for name in self.sources}
        return {**without_src, **{name: name for name in self.sources}}


def archive_of(jobs: Iterable[str], project: Path) -> ProjectArchive:
    """What the functions ``jobs``, each as ``module:function``, need of the project and of this library."""
    return _archive({file for job in jobs for file in _files(job, project)}, project)


def whole_archive(project: Path) -> ProjectArchive:
    """All Python files of the project, for whoever does not know which of its functions will be called."""
    return _archive({file.relative_to(project).as_posix() for file in _python_files(project)}, project)


def _archive(files: Iterable[str], project: Path) -> ProjectArchive:
    library = {name: (LIBRARY.parent / name).read_bytes() for name in OF_LIBRARY}
    packages = {name: source + REST_OF_PACKAGE for name, source in library.items() if name.endswith("__init__.py")}
    return ProjectArchive({**library, **packages, **{file: content_of(project / file) for file in files}})


def _python_files(folder: Path) -> Iterator[Path]:
    """The project's Python files, without hidden folders and folders of others: environments, and this library."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        if here == LIBRARY or "pyvenv.cfg" in names or here.name in ("site-packages", "node_modules"):
            folders.clear()
        else:
            yield from (here / name for name in names if name.endswith(".py"))


def _files(job: str, project: Path) -> Iterator[str]:
    code = code_fingerprint(job, project)
    reached = [Path(file) for file in code.files]
    if code.value is None:
        reached += list(_packages(job, project))
    for file in reached:
        yield file.as_posix()
        for parent in file.parents[:-1]:
            if (project / parent / "__init__.py").is_file():
                yield (parent / "__init__.py").as_posix()


def _packages(job: str, project: Path) -> Iterator[Path]:
    """Everything beside the job's module, or in its package."""
    module = job.partition(":")[0]
    beside = Path(module).parent if is_script(module) else module.partition(".")[0]
    for folder in (project,) if is_script(module) else code_folders(project):
        package = folder / beside
        found = package.rglob("*.py") if package.is_dir() and package != folder else folder.glob("*.py")
        yield from (file.relative_to(project) for file in found)


def _compiled(name: str, source: bytes) -> bytes | None:
    """A module as Python compiles it; None for what is no Python: it may never be imported, and if it is, the worker
    says what is wrong with it.
    """
    try:
        tree = ast.parse(source, name)
        tree.body[_after_beginning(tree) : _after_beginning(tree)] = ast.parse(PREPARE).body
        code = compile(tree, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return MAGIC_NUMBER + UNCHECKED + source_hash(source) + marshal.dumps(code)


def _after_beginning(tree: ast.Module) -> int:
    """The place behind the docstring and behind ``from __future__``, which has to stand first."""
    place = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    while place < len(tree.body) and _is_future(tree.body[place]):
        place += 1
    return place


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
