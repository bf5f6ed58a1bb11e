"""Which files Python opens while a stage's function is called, as Python's own audit events tell. Also which line of
the project asks for something, and through which function of a library.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from inspect import currentframe
from pathlib import Path

from stagehold.code.project import is_of_project

SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/")
CODE = (".py", ".pyc", ".so", ".pyi")

_listening: list[tuple[str, dict[str, str]]] = []
# Files that a script finds under other paths than their own, in the folder of `SparkFiles`.
copies: dict[str, str] = {}


@contextmanager
def files_opened(project: str) -> Iterator[dict[str, str]]:
    """The paths that lines of the project, or what they call, open for reading within the block; each with its line.

    Not seen: what a library opens by itself in C, like Arrow. The analysis of the code knows such calls by their names.
    """
    _install()
    found: dict[str, str] = {}
    listener = (project, found)
    _listening.append(listener)
    try:
        yield found
    finally:
        _listening[:] = [other for other in _listening if other is not listener]  # two that are equal are not the same


@contextmanager
def in_folder(project: str) -> Iterator[None]:
    """Relative paths begin at the project's folder in the block, wherever the command was called. That is so for all
    threads of the process, and ours use whole paths.
    """
    before = None
    with suppress(OSError):  # the folder that it was called in may be gone
        before = Path.cwd()
    os.chdir(project)
    try:
        yield
    finally:
        if before:
            with suppress(OSError):
                os.chdir(before)


@cache
def _install() -> None:
    """Python never forgets such a hook, so there is only one, which does nothing while nobody listens."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or not _listening:
        return
    path, mode, flags = (*arguments, None, None, None)[:3]
    if not isinstance(path, str | bytes | os.PathLike) or _writes(mode, flags):
        return
    file = os.fsdecode(path)
    if not file.startswith("/"):
        with suppress(OSError):  # the folder may be gone, and what is raised here would be the function's
            file = str(Path.cwd() / file)
    file = copies.get(file, file)
    if file.startswith((*SYSTEM, *_own_places())) or file.endswith(CODE):
        return
    for project, found in _listening:
        place = calling_line(project)[1]
        if place:
            found.setdefault(file, place)


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return not mode.startswith("r")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@cache
def _own_places() -> tuple[str, ...]:
    """Where Python and its packages are."""
    return tuple({f"{Path(path)}/" for path in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())})


def calling_line(project: str) -> tuple[str, str]:
    """The function of a library that the innermost line of the project has called, and that line as `file:number`.

    Both are empty where no line of the project is on the way.
    """
    frame, called = currentframe(), ""
    while frame is not None:
        if is_of_project(frame.f_code.co_filename, project):
            return called, f"{Path(frame.f_code.co_filename).relative_to(project).as_posix()}:{frame.f_lineno}"
        called = frame.f_code.co_name
        frame = frame.f_back
    return "", ""
