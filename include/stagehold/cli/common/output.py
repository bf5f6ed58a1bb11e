"""How commands print: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

    from stagehold.plan.resume.decisions import ResumePlan
    from stagehold.settings import Settings

WIDTH_OF_A_PIPE = 200  # Rich takes 80 for what is no terminal and folds the cells that grep looks for
LEAST_OF_THE_LAST = 24  # columns of the terminal below which folding leaves nothing to read
BETWEEN_COLUMNS = 4  # with the edges of the table

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


@dataclass(frozen=True)
class ShownTable:
    """A table of texts, as a command prints it and a notebook shows it. ``below`` are lines that stand under it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    below: Sequence[str] = ()

    def print(self) -> None:
        if self.rows:
            print_table(self.title, self.columns, self.rows)
        for line in self.below:
            typer.echo(line)

    def __repr__(self) -> str:
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        if self.rows:
            width = max(WIDTH_OF_A_PIPE, _least_width(self.columns, self.rows))
            Console(width=width, file=text).print(_table(self.title, self.columns, self.rows))
        return "\n".join([line.rstrip() for line in text.getvalue().splitlines()] + [*self.below])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        table = f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>" if self.rows else ""
        return table + "".join(f"<div>{escape(line)}</div>" for line in self.below)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose cells are taken as they are, so `[brackets]` in them are no markup.

    Only the last column is folded where the terminal is narrow: put the one there that is long, or that people copy.
    Where the others do not fit, each row becomes a block with a line for each of its cells, as psql's `\\x auto` does:
    nothing is cut off. In a pipe a row stays a row, however wide, as programs look for its cells.
    """
    from rich.console import Console

    cells = [list(row) for row in rows]
    least = _least_width(columns, cells)
    console = Console(width=None if sys.stdout.isatty() else max(WIDTH_OF_A_PIPE, least))
    shape = _table if least <= console.width else _blocks
    console.print(shape(title, columns, cells))


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """What a table needs if only its last column is folded."""
    from rich.cells import cell_len

    widths = [
        max(cell_len(line) for cell in column for line in cell.splitlines() or [""])
        for column in zip(columns, *rows, strict=True)
    ]
    *others, last = widths
    return sum(others) + min(last, LEAST_OF_THE_LAST) + BETWEEN_COLUMNS * len(columns)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns, 1):
        table.add_column(column, overflow="fold", no_wrap=place < len(columns))
    for cells in rows:
        table.add_row(*(Text(cell, COLOURS.get(cell, "")) for cell in cells))
    return table


def _blocks(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The rows below one another, each cell beside its column's name. Empty cells are left out."""
    from rich.table import Table
    from rich.text import Text

    blocks = Table(title=Text(title, "bold"), title_justify="left", box=None, show_header=False, padding=(0, 1))
    blocks.add_column(style="dim", no_wrap=True)
    blocks.add_column(overflow="fold")
    for number, cells in enumerate(rows):
        if number:
            blocks.add_row("", "")
        for column, cell in zip(columns, cells, strict=True):
            if cell:
                blocks.add_row(Text(column), Text(cell, COLOURS.get(cell, "")))
    return blocks


def print_tree(tree: Tree) -> None:
    """Print a tree; in a pipe without colours, and one line for each of its lines, however long."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    Console(width=None if terminal else WIDTH_OF_A_PIPE).print(tree, soft_wrap=not terminal)


def tell_target(settings: Settings) -> None:
    """Which target's lake it is, if there is a target."""
    if settings.target:
        typer.echo(f"target {settings.target}, lake {settings.lake_uri}")


def explanation(title: str, plan: ResumePlan) -> ShownTable:
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
    return ShownTable(title, ("stage", "action", "count", "partitions", "why"), rows)


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
