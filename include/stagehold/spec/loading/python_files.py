"""Python files in the folder of pipelines: each is run, and what it declares is read as a pipeline's file is."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import RLock

from stagehold.code.project import code_folders, compile_modules_of, find_module
from stagehold.spec.python_declarations import DECLARED
from stagehold.spec.yaml import Document, Problem

SUFFIX = ".py"
WORDS = (b"stagehold", b"Pipeline(")  # without which a file is none of pipelines: it is not run
ALLOWED = "Python that runs by itself, without Spark or Airflow"
_ONE_AT_A_TIME = RLock()  # as modules of the process are put aside meanwhile


@dataclass(frozen=True)
class PythonFile:
    """What a file declares, and the files of the project that it imported."""

    documents: tuple[Document, ...]
    imported: tuple[Path, ...] = ()


def declares_pipelines(path: Path) -> bool:
    try:
        text = path.read_bytes()
    except OSError:
        return False
    return all(word in text for word in WORDS)


def run_python_file(path: Path, project: Path) -> PythonFile:
    """Run a file with the modules of its project as they are now. What it raises is a problem of the file."""
    with _ONE_AT_A_TIME, _own_modules(project) as imported:
        token = DECLARED.set([])
        try:
            code = compile(path.read_bytes(), str(path), "exec")
            exec(code, {"__name__": path.stem, "__file__": str(path)})  # noqa: S102 - its author asks for that
            declared = DECLARED.get() or []
            return PythonFile(tuple(each.document(str(path)) for each in declared), tuple(imported()))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever code of the project raises
            return PythonFile((_broken(path, error),), tuple(imported()))
        finally:
            DECLARED.reset(token)


def _broken(path: Path, error: BaseException) -> Document:
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else (own or [1])[-1]
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    return Document(str(path), {}, {(): line or 1}, (Problem((), said, ALLOWED),))


@contextmanager
def _own_modules(project: Path) -> Iterator[Callable[[], Iterator[Path]]]:
    """Have the block import the project's modules anew, and leave those that the process has as they were."""
    folder, of_project = str(project.resolve()), cache(partial(_is_of_project, project))
    aside = {name: module for name, module in sys.modules.copy().items() if of_project(name.partition(".")[0])}
    for name in aside:
        del sys.modules[name]
    before, path = set(sys.modules), sys.path.copy()
    compile_modules_of(project.resolve())
    sys.path[:0] = map(str, code_folders(project.resolve()))

    def imported() -> Iterator[Path]:
        files = (getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before)
        return (Path(file) for file in files if file and file.startswith(f"{folder}/"))

    try:
        yield imported
    finally:
        for name in set(sys.modules) - before:
            if of_project(name.partition(".")[0]):
                del sys.modules[name]
        sys.modules.update(aside)
        sys.path[:] = path


def _is_of_project(project: Path, name: str) -> bool:
    return name not in sys.stdlib_module_names and name != "stagehold" and find_module(name, project) is not None
