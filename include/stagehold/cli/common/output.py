"""How commands print: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.tree import Tree

    from stagehold.plan.resume.decisions import ResumePlan

WIDTH_OF_A_PIPE = 200  # Rich takes 80 for what is no terminal and folds the cells that grep looks for

COLOURS = {
    "consumable": "green",
    "finished": "green",
    "running": "yellow",
    "restarting": "yellow",
    "blocked": "red",
    "failing": "red",
    "failed": "red",
    "cancelling": "magenta",
    "canceling": "magenta",
    "canceled": "magenta",
    "suspended": "magenta",
    "released": "dim",
}


def print_document(document: Mapping[str, Any]) -> None:
    """Print JSON; moments as ISO text in UTC."""
    typer.echo(json.dumps(document, indent=2, default=_json_value))


def print_progress(line: str) -> None:
    """What a command says while it works: to stderr, so that stdout has the result alone."""
    typer.echo(line, err=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose cells are taken as they are, so `[brackets]` in them are no markup.

    Only the last column is folded where the terminal is narrow: put the one there that is long, or that people copy.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column != columns[-1])
    for cells in rows:
        table.add_row(*(Text(cell, COLOURS.get(cell, "")) for cell in cells))
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE).print(table)


def print_tree(tree: Tree) -> None:
    """Print a tree; in a pipe without colours, and one line for each of its lines, however long."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    Console(width=None if terminal else WIDTH_OF_A_PIPE).print(tree, soft_wrap=not terminal)


def print_explanation(title: str, plan: ResumePlan) -> None:
    """One row per stage, action and reason."""
    from stagehold.plan.resume.plan_summary import explain

    rows = [
        (
            line.stage,
            line.action.value,
            f"{len(line.partitions)} of {line.total}",
            str(line.partitions),
            line.reason,
        )
        for line in explain(plan)
    ]
    print_table(title, ("stage", "action", "count", "partitions", "why"), rows)


def moment(time: datetime | None) -> str:
    """A time for people, in UTC; nothing for one that has not come."""
    return f"{time:%Y-%m-%d %H:%M:%S}" if time else ""


def _json_value(value: object) -> object:
    from stagehold.model.partition_set import PartitionSet

    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, PartitionSet):
        return [*value]
    raise TypeError(f"{type(value).__name__} has no place in a document")
