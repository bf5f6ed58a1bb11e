"""Which line of the project asks Spark for something, and by which word of pyspark."""

from __future__ import annotations

from inspect import currentframe
from pathlib import Path
from typing import TYPE_CHECKING

import stagehold

if TYPE_CHECKING:
    from types import FrameType

LIBRARY = str(Path(stagehold.__file__).parent)


def calling_line(project: str) -> tuple[str, str]:
    """The function of a library that the innermost line of the project has called, and that line as `file:number`.

    Both are empty where no line of the project is on the way.
    """
    frame, called = currentframe(), ""
    while frame is not None:
        if is_of_project(frame, project):
            return called, f"{Path(frame.f_code.co_filename).relative_to(project).as_posix()}:{frame.f_lineno}"
        called = frame.f_code.co_name
        frame = frame.f_back
    return "", ""


def is_of_project(frame: FrameType, project: str) -> bool:
    """Asked for each frame of a stack, so paths are compared as texts."""
    file = frame.f_code.co_filename
    return file.startswith(f"{project}/") and "site-packages" not in file and not file.startswith(LIBRARY)
