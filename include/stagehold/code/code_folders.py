"""Where the project's modules lie: in its own folder and, as in many a package, in the folder `src` of it."""

from __future__ import annotations

import sys
from pathlib import Path, PurePath

SRC = "src"


def code_folders(project: Path) -> tuple[Path, ...]:
    """The folders that Python imports modules of the project from, the one that counts first."""
    below = project / SRC
    return (project, below) if below.is_dir() else (project,)


def places_text(project: Path) -> str:
    """Where a module was looked for, for whoever is told that it is not there."""
    return f"under {project} or its {SRC}/"


def imported_as(file: PurePath) -> PurePath:
    """A file of the project, by its path, as seen from the folder that it is imported from."""
    return file.relative_to(SRC) if SRC in file.parts[:1] and len(file.parts) > 1 else file


def find_modules_of(project: Path) -> None:
    """Have this process import modules of the project before others of their names."""
    own, *others = map(str, code_folders(project))
    if own not in sys.path:
        sys.path.insert(0, own)
    for folder in others:
        if folder not in sys.path:
            sys.path.insert(sys.path.index(own) + 1, folder)


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
