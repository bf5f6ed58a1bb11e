"""What `stagehold plan --all` prints of a change: tables for people, Markdown for a pull request, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import timedelta
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stagehold.cli.common.output import print_document, print_table
from stagehold.errors import InvalidArgument
from stagehold.settings import Settings

if TYPE_CHECKING:
    from stagehold.lake.declared_columns import ColumnChange
    from stagehold.run.backfill.project_change import ChangedCell, ProjectChange

ABOVE_BUDGET = 2  # the exit code


class ReportFormat(StrEnum):
    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


COMPUTED = ("pipeline", "stage", "intervals", "partitions", "seconds", "bytes", "why")
JUDGED = ("pipeline", "stage", "intervals", "partitions", "why")
COLUMNS = ("table", "column", "was", "becomes", "breaks readers", "effect")
LEFT_OUT = ("pipeline", "why")


def show_change(
    settings: Settings, *, against: str | None, base: str | None, output: ReportFormat, budget: str | None
) -> None:
    """Compare with what is on record, and with the code of a commit.

    :raises typer.Exit: with 2, what is computed again takes longer than the budget
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.backfill.project_change import project_at, project_change

    most = _budget(budget)
    known = _against(against, settings) if against else settings
    with ExitStack() as opened:
        before = opened.enter_context(project_at(base, known)) if base else None
        change = project_change(opened.enter_context(open_ledger(known)), known, before)
    said = _summary(change, most)
    match output:
        case ReportFormat.JSON:
            print_document(_document(change, most))
        case ReportFormat.MARKDOWN:
            typer.echo("\n".join(_markdown(change, said)))
        case ReportFormat.TABLE:
            for title, columns, rows in _tables(change):
                print_table(title, columns, rows)
            typer.echo(said)
    if _is_above(change, most):
        raise typer.Exit(ABOVE_BUDGET)


def _budget(text: str | None) -> timedelta | None:
    from stagehold.model.units import read_duration

    try:
        return None if text is None else read_duration(text)
    except ValueError as error:
        raise InvalidArgument("--budget", str(text), "a duration, such as 90s, 30min or 2h") from error


def _against(ledger: str, settings: Settings) -> Settings:
    """The settings with another ledger: by its URL, its file, or the home that it is in, which has a lake, too."""
    if "://" in ledger:
        return replace(settings, ledger=ledger)
    place = Path(ledger).absolute()
    if place.is_dir() and (place / "ledger.db").is_file():
        return replace(settings, home=str(place))
    if not place.is_file():
        raise InvalidArgument(
            "--against", ledger, "a ledger: its URL, its file, or the folder that STAGEHOLD_HOME names"
        )
    return replace(settings, ledger=f"sqlite:///{place}")


def _is_above(change: ProjectChange, budget: timedelta | None) -> bool:
    return budget is not None and change.seconds > budget.total_seconds()


def _summary(change: ProjectChange, budget: timedelta | None) -> str:
    partitions = sum(len(cell.partitions) for cell in change.computed)
    intervals = len({(cell.pipeline, cell.interval) for cell in change.computed})
    cost = f"about {_time(change.seconds)} of work and {_size(change.bytes)}, as they took before"
    told = f"{partitions} partitions of {intervals} of {change.intervals} intervals are computed again: {cost}"
    if budget is None:
        return told
    where = "above" if _is_above(change, budget) else "within"
    return f"{told}; that is {where} the budget of {_time(budget.total_seconds())}"


Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, columns and rows


def _tables(change: ProjectChange) -> Iterator[Table]:
    """The tables that have rows."""
    tables: tuple[Table, ...] = (
        ("What is computed again", COMPUTED, list(_rows(change.computed, _cost))),
        ("Which gates judge again", JUDGED, list(_rows([cell for cell in change.cells if cell.judged], _verdicts))),
        ("Columns of published tables that change", COLUMNS, [column_cells(each) for each in change.columns]),
        ("Not planned", LEFT_OUT, [(which, why.splitlines()[0]) for which, why in change.left_out]),
    )
    return (table for table in tables if table[2])


def _rows(
    cells: Sequence[ChangedCell], told: Callable[[Sequence[ChangedCell]], tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """A row for each stage and reason; intervals with the same reason share one."""
    ordered = sorted(cells, key=lambda cell: (cell.pipeline, cell.stage, _why(cell), cell.interval))
    for (pipeline, stage, why), alike in groupby(ordered, key=lambda cell: (cell.pipeline, cell.stage, _why(cell))):
        found = list(alike)
        keys = [cell.interval for cell in found]
        which = keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]} ({len(keys)})"
        yield pipeline, stage, which, *told(found), why


def _cost(cells: Sequence[ChangedCell]) -> tuple[str, ...]:
    partitions, of_all = sum(len(cell.partitions) for cell in cells), sum(cell.of for cell in cells)
    return f"{partitions} of {of_all}", f"{sum(cell.seconds for cell in cells):.1f}", _size(sum(c.bytes for c in cells))


def _verdicts(cells: Sequence[ChangedCell]) -> tuple[str, ...]:
    return (str(sum(cell.judged for cell in cells)),)


def _why(cell: ChangedCell) -> str:
    code = f" ({', '.join(cell.code)})" if cell.code else ""
    return f"{'; '.join(dict.fromkeys(cell.reasons))}{code}"


def column_cells(change: ColumnChange) -> tuple[str, ...]:
    breaks = "yes" if change.breaks else "no"
    return change.table, change.column, change.before, change.after, breaks, change.effect


def _markdown(change: ProjectChange, said: str) -> Iterator[str]:
    yield f"### Stagehold: {said}"
    for title, columns, rows in _tables(change):
        yield from ("", f"**{title}**", "", _line(columns), _line(["---"] * len(columns)))
        yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _document(change: ProjectChange, budget: timedelta | None) -> Mapping[str, Any]:
    return {
        "seconds": round(change.seconds, 3),
        "bytes": change.bytes,
        "intervals": change.intervals,
        "budget_seconds": budget.total_seconds() if budget else None,
        "above_budget": _is_above(change, budget),
        "cells": [asdict(replace(cell, seconds=round(cell.seconds, 3))) for cell in change.cells],
        "columns": [asdict(each) for each in change.columns],
        "left_out": [{"of": which, "why": why} for which, why in change.left_out],
    }


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _size(count: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB")
    size, place = float(count), 0
    while size >= 1000 and place + 1 < len(units):
        size, place = size / 1000, place + 1
    return f"{size:.1f} {units[place]}" if place else f"{count} bytes"
