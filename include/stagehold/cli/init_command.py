"""`stagehold init`: a small project that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="Folder to write it into. Default: the current one.", metavar="[PATH]")]


def init(path: Folder = Path()) -> None:
    """Write a small project that runs, and overwrite nothing: pipeline, functions, suite, tests, DAG file."""
    from stagehold.local.project.new_project import write_project

    folder = path.absolute()
    for written in write_project(folder):
        typer.echo(str(written.relative_to(folder) if written.is_relative_to(folder) else written))
    first = "" if folder == Path.cwd() else f"cd {path} && "
    typer.echo(f"\nRun it: {first}stagehold run customer_totals")
